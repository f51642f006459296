// Checks a ClickHouse server with ch-go. Arguments: address, server name, CA file, user, password, database.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/uuid"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, what string, values ...any) {
	if !holds {
		panic(fmt.Sprint(what, values))
	}
}

func connect(compression ch.Compression, password string) (*ch.Client, error) {
	pem, err := os.ReadFile(os.Args[3])
	must(err)
	pool := x509.NewCertPool()
	check(pool.AppendCertsFromPEM(pem), "the CA file holds a certificate")
	return ch.Dial(context.Background(), ch.Options{
		Address: os.Args[1], User: os.Args[4], Password: password, Database: os.Args[6], Compression: compression,
		TLS: &tls.Config{ServerName: os.Args[2], RootCAs: pool},
	})
}

func failsWith(code proto.Error, err error) {
	var exception *ch.Exception
	check(errors.As(err, &exception) && exception.Code == code, "exception", code, err)
}

// run executes a query and lets its rows go by, whatever their types.
func run(client *ch.Client, body string, settings ...ch.Setting) error {
	var rows proto.Results
	pass := func(context.Context, proto.Block) error { return nil }
	return client.Do(context.Background(), ch.Query{Body: body, Settings: settings, Result: rows.Auto(), OnResult: pass})
}

// Values go in and come back as they were, microseconds before 1970 and in 2262 included.
func values(client *ch.Client) {
	must(run(client, "DROP TABLE IF EXISTS exact"))
	must(run(client, "CREATE TABLE exact (id Int64, s Nullable(String), d DateTime64(6, 'UTC'), x Decimal(38, 10), g UUID) "+
		"ENGINE = MergeTree ORDER BY id"))
	ticks := []int64{-1, -2208988800000000, 9223372036854775, 0}
	var id proto.ColInt64
	var text = new(proto.ColStr).Nullable()
	var date = proto.ColDateTime64{Precision: proto.PrecisionMicro, PrecisionSet: true, Location: time.UTC}
	var number proto.ColDecimal128
	var guid proto.ColUUID
	for row, tick := range ticks {
		id.Append(int64(row))
		if row == 1 {
			text.Append(proto.Null[string]())
		} else {
			text.Append(proto.NewNullable(fmt.Sprintf("r\x00w %d", row)))
		}
		date.AppendRaw(proto.DateTime64(tick))
		number.Append(proto.Decimal128{Low: uint64(row), High: uint64(row)})
		guid.Append(uuid.UUID{15: byte(row), 0: 1})
	}
	must(client.Do(context.Background(), ch.Query{
		Body: "INSERT INTO exact VALUES",
		Input: proto.Input{
			{Name: "id", Data: &id}, {Name: "s", Data: text}, {Name: "d", Data: &date}, {Name: "x", Data: proto.Alias(&number, "Decimal(38, 10)")}, {Name: "g", Data: &guid},
		},
	}))
	var backID proto.ColInt64
	var backText = new(proto.ColStr).Nullable()
	var backDate proto.ColDateTime64
	var backNumber proto.ColDecimal128
	var backGUID proto.ColUUID
	rows := 0
	must(client.Do(context.Background(), ch.Query{
		Body: "SELECT * FROM exact ORDER BY id",
		Result: proto.Results{
			{Name: "id", Data: &backID}, {Name: "s", Data: backText}, {Name: "d", Data: &backDate}, {Name: "x", Data: &backNumber}, {Name: "g", Data: &backGUID},
		},
		OnResult: func(_ context.Context, block proto.Block) error {
			for row := 0; row < block.Rows; row++ {
				check(backID.Row(row) == int64(rows), "id")
				check(backText.Row(row) == text.Row(rows), "text", backText.Row(row))
				check(int64(backDate.Data[row]) == ticks[rows], "date", backDate.Data[row])
				check(backNumber.Row(row) == number.Row(rows), "number")
				check(backGUID.Row(row) == guid.Row(rows), "uuid")
				rows++
			}
			return nil
		},
	}))
	check(rows == len(ticks), "rows", rows)
	var shown proto.ColStr
	must(client.Do(context.Background(), ch.Query{
		Body:   "SELECT toString(d) AS t FROM exact WHERE id = 0",
		Result: proto.Results{{Name: "t", Data: &shown}},
	}))
	check(shown.Rows() == 1 && shown.Row(0) == "1969-12-31 23:59:59.999999", "the engine's reading", shown)
}

// Many rows go in block by block.
func stream(client *ch.Client) {
	must(run(client, "DROP TABLE IF EXISTS many"))
	must(run(client, "CREATE TABLE many (n UInt64) ENGINE = MergeTree ORDER BY n"))
	var column proto.ColUInt64
	blocks := 0
	must(client.Do(context.Background(), ch.Query{
		Body:  "INSERT INTO many (n) VALUES",
		Input: proto.Input{{Name: "n", Data: &column}},
		OnInput: func(context.Context) error {
			column.Reset()
			if blocks == 50 {
				return io.EOF
			}
			for row := 0; row < 10000; row++ {
				column.Append(uint64(blocks*10000 + row))
			}
			blocks++
			return nil
		},
	}))
	var sum, readRows, profileRows uint64
	must(client.Do(context.Background(), ch.Query{
		Body:   "SELECT n FROM many",
		Result: proto.Results{{Name: "n", Data: &column}},
		OnResult: func(_ context.Context, block proto.Block) error {
			for row := 0; row < block.Rows; row++ {
				sum += column.Row(row)
			}
			return nil
		},
		OnProgress: func(_ context.Context, p proto.Progress) error { readRows += p.Rows; return nil },
		OnProfile:  func(_ context.Context, p proto.Profile) error { profileRows = p.Rows; return nil },
	}))
	check(sum == 500000*499999/2, "sum", sum)
	check(profileRows == 500000, "profile", profileRows)
	check(readRows > 0 && readRows <= 500000, "progress", readRows)
}

func main() {
	for _, compression := range []ch.Compression{ch.CompressionDisabled, ch.CompressionLZ4} {
		client, err := connect(compression, os.Args[5])
		must(err)
		check(client.ServerInfo().Revision == 54453, "revision", client.ServerInfo())
		must(client.Ping(context.Background()))
		values(client)
		stream(client)
		failsWith(60, run(client, "SELECT * FROM nowhere"))
		failsWith(395, run(client, "SELECT throwIf(number = 1000000) FROM numbers(2000000)"))
		failsWith(115, run(client, "SELECT 1", ch.Setting{Key: "no_such_setting", Value: "1", Important: true}))
		must(run(client, "SELECT 1"))
		must(client.Close())
	}
	_, err := connect(ch.CompressionDisabled, "wrong")
	failsWith(516, err)

	// A context that ends cancels the query; ch-go then closes the connection, and the server ends what ran.
	client, err := connect(ch.CompressionDisabled, os.Args[5])
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	var numbers proto.ColUInt64
	err = client.Do(ctx, ch.Query{
		Body:     "SELECT number FROM system.numbers",
		Result:   proto.Results{{Name: "number", Data: &numbers}},
		OnResult: func(context.Context, proto.Block) error { cancel(); return nil },
	})
	check(errors.Is(err, context.Canceled), "cancelled", err)
	fmt.Println("ch-go: all checks passed")
}
