// Checks a SQL Server with go-mssqldb. Arguments: port, CA file, user, password, database.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"reflect"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, what string, values ...any) {
	if !holds {
		panic(fmt.Sprintf("%s: %#v %v", what, values, values))
	}
}

func same(what string, actual, expected any) {
	if at, is := expected.(time.Time); is {
		seen, is := actual.(time.Time)
		_, offset := at.Zone()
		_, seenOffset := seen.Zone()
		check(is && seen.Equal(at) && offset == seenOffset, what, actual, expected)
		return
	}
	check(reflect.DeepEqual(actual, expected), what, actual, expected)
}

// failsWith demands the number of the last error that the server sent.
func failsWith(number int32, err error) {
	var failure mssql.Error
	check(errors.As(err, &failure) && failure.Number == number, "error number", number, err)
}

func open(certified string, password string) *sql.DB {
	address := url.URL{
		Scheme: "sqlserver", User: url.UserPassword(os.Args[3], password), Host: "localhost:" + os.Args[1],
		RawQuery: url.Values{
			"database": {os.Args[5]}, "encrypt": {"true"}, "certificate": {os.Args[2]}, "hostNameInCertificate": {certified}, "app name": {"go client"},
		}.Encode(),
	}
	db, err := sql.Open("sqlserver", address.String())
	must(err)
	return db
}

func utc(year, month, day, hour, minute, second, nanosecond int) time.Time {
	return time.Date(year, time.Month(month), day, hour, minute, second, nanosecond, time.UTC)
}

type typed struct {
	name    string // as declared
	literal string
	value   any // as the driver gives it
}

var guid = []byte{0x25, 0x47, 0x98, 0x0e, 0x1c, 0xc5, 0xf4, 0x4b, 0x99, 0x60, 0xe1, 0xc8, 0x0e, 0x27, 0xab, 0xa0}

var types = []typed{
	{"bit", "1", true},
	{"tinyint", "255", int64(255)},
	{"smallint", "-32768", int64(-32768)},
	{"int", "-2147483648", int64(math.MinInt32)},
	{"bigint", "-9223372036854775808", int64(math.MinInt64)},
	{"decimal(38,0)", "99999999999999999999999999999999999999", []byte(strings.Repeat("9", 38))},
	{"decimal(38,10)", "-0.0000000001", []byte("-0.0000000001")},
	{"numeric(9,2)", "123.45", []byte("123.45")},
	{"money", "-922337203685477.5808", []byte("-922337203685477.5808")},
	{"smallmoney", "214748.3647", []byte("214748.3647")},
	{"real", "0.1e0", float64(float32(0.1))},
	{"float", "1.7976931348623157e308", math.MaxFloat64},
	{"char(5)", "'ab'", "ab   "},
	{"varchar(10)", "N'é€'", "é€"},
	{"nchar(4)", "N'é'", "é   "},
	{"nvarchar(10)", "N'é漢😀'", "é漢😀"},
	{"varchar(max)", "REPLICATE(CAST('x' AS varchar(max)), 100000)", strings.Repeat("x", 100000)},
	{"nvarchar(max)", "REPLICATE(CAST(N'é漢😀' AS nvarchar(max)), 25000)", strings.Repeat("é漢😀", 25000)},
	{"binary(4)", "0x0102", []byte{1, 2, 0, 0}},
	{"varbinary(4)", "0xFF00", []byte{0xff, 0}},
	{"varbinary(max)", "CAST(REPLICATE(CAST('x' AS varchar(max)), 100000) AS varbinary(max))", []byte(strings.Repeat("x", 100000))},
	{"date", "'0001-01-01'", utc(1, 1, 1, 0, 0, 0, 0)},
	{"time(7)", "'23:59:59.9999999'", utc(1, 1, 1, 23, 59, 59, 999999900)},
	{"datetime2(6)", "'1969-12-31 23:59:59.999999'", utc(1969, 12, 31, 23, 59, 59, 999999000)},
	{"datetime2(7)", "'9999-12-31 23:59:59.9999999'", utc(9999, 12, 31, 23, 59, 59, 999999900)},
	{"datetime", "'2023-11-14T22:13:20.997'", utc(2023, 11, 14, 22, 13, 20, 997000000)},
	{"smalldatetime", "'2023-11-14 22:13'", utc(2023, 11, 14, 22, 13, 0, 0)},
	{"datetimeoffset(1)", "'2023-11-14 22:13:20.1 +05:30'", time.Date(2023, 11, 14, 22, 13, 20, 100000000, time.FixedZone("", 5*3600+1800))},
	{"uniqueidentifier", "'0E984725-C51C-4BF4-9960-E1C80E27ABA0'", guid},
}

func one(db *sql.DB, query string, arguments ...any) any {
	var value any
	must(db.QueryRow(query, arguments...).Scan(&value))
	return value
}

// values: every type as an expression, as a column of a table with a NULL beside it, and as a parameter that comes back.
func values(db *sql.DB) {
	for index, t := range types {
		same(t.name, one(db, fmt.Sprintf("SELECT CAST(%s AS %s)", t.literal, t.name)), t.value)
		table := fmt.Sprintf("dbo.go_t%d", index)
		_, err := db.Exec(fmt.Sprintf("CREATE TABLE %s (id int NOT NULL PRIMARY KEY, a %s NOT NULL, b %s NULL)", table, t.name, t.name))
		must(err)
		result, err := db.Exec(fmt.Sprintf(
			"INSERT INTO %s VALUES (1, CAST(%s AS %s), CAST(%s AS %s)), (2, CAST(%s AS %s), NULL)",
			table, t.literal, t.name, t.literal, t.name, t.literal, t.name))
		must(err)
		count, err := result.RowsAffected()
		must(err)
		same("rows affected", count, int64(2))
		// The parameter's value in the form that the driver gave it, converted by the server to the column's type.
		// A []byte goes out as varbinary: a number takes the road of a text, a uniqueidentifier that of its bytes.
		var parameter = t.value
		if text, is := t.value.([]byte); is && strings.ContainsAny(t.name[:1], "dnms") {
			parameter = string(text)
		}
		// A nil without a type is an nvarchar, which has no way into a binary column.
		var null any
		if strings.Contains(t.name, "binary") {
			null = []byte(nil)
		}
		_, err = db.Exec(fmt.Sprintf("INSERT INTO %s VALUES (3, CAST(@p1 AS %s), @p2)", table, t.name), parameter, null)
		must(err)
		rows, err := db.Query(fmt.Sprintf("SELECT id, a, b FROM %s ORDER BY id", table))
		must(err)
		columns, err := rows.ColumnTypes()
		must(err)
		nullable, known := columns[2].Nullable()
		check(known && nullable, "nullable", t.name)
		nullable, known = columns[1].Nullable()
		check(known && !nullable, "not nullable", t.name)
		base, _, _ := strings.Cut(strings.Replace(strings.ToUpper(t.name), "NUMERIC", "DECIMAL", 1), "(")
		same("type name", columns[1].DatabaseTypeName(), base)
		for id := int64(1); rows.Next(); id++ {
			var key, a, b any
			must(rows.Scan(&key, &a, &b))
			same("key", key, id)
			same("column "+t.name, a, t.value)
			if id == 1 {
				same("nullable column "+t.name, b, t.value)
			} else {
				same("NULL of "+t.name, b, nil)
			}
		}
		must(rows.Err())
	}
}

// writes: rows go in by parameters, are changed, deleted and counted; results and messages come one after the other.
func writes(db *sql.DB) {
	_, err := db.Exec("CREATE TABLE dbo.go_rows (id int IDENTITY(10, 5) NOT NULL PRIMARY KEY, name nvarchar(20) NULL, n bigint NOT NULL DEFAULT 7)")
	must(err)
	insert, err := db.Prepare("INSERT INTO dbo.go_rows (name, n) OUTPUT inserted.id VALUES (@p1, @p2)")
	must(err)
	for row := range 50 {
		var id int64
		must(insert.QueryRow(fmt.Sprintf("n'%d", row), row).Scan(&id))
		same("identity", id, int64(10+5*row))
	}
	must(insert.Close())
	result, err := db.Exec("UPDATE dbo.go_rows SET name = NULL, n = n * 2 WHERE n >= @least AND name <> @but", sql.Named("least", 40), sql.Named("but", "n'41"))
	must(err)
	count, err := result.RowsAffected()
	must(err)
	same("updated", count, int64(9))
	same("sum", one(db, "SELECT SUM(n) FROM dbo.go_rows"), int64(49*50/2+445-41))
	same("nulls", one(db, "SELECT COUNT(*) FROM dbo.go_rows WHERE name IS NULL"), int64(9))
	result, err = db.Exec("DELETE FROM dbo.go_rows WHERE n < 10")
	must(err)
	count, err = result.RowsAffected()
	must(err)
	same("deleted", count, int64(10))

	rows, err := db.Query("SELECT TOP (1) name FROM dbo.go_rows ORDER BY id; SELECT 1 AS a, N'b' AS b UNION ALL SELECT 2, NULL ORDER BY a")
	must(err)
	var name string
	check(rows.Next(), "a first result")
	must(rows.Scan(&name))
	same("name", name, "n'10")
	check(!rows.Next() && rows.NextResultSet(), "a second result")
	var seen []string
	for rows.Next() {
		var a int
		var b sql.NullString
		must(rows.Scan(&a, &b))
		seen = append(seen, fmt.Sprint(a, b))
	}
	must(rows.Err())
	same("second result", seen, []string{"1 {b true}", "2 { false}"})
	check(!rows.NextResultSet(), "no third result")

	_, err = db.Exec("CREATE PROCEDURE dbo.go_twice @in int, @out int OUTPUT AS BEGIN SET @out = @in * 2; RETURN 3 END")
	must(err)
	var doubled int
	var status mssql.ReturnStatus
	_, err = db.Exec("dbo.go_twice", sql.Named("in", 21), sql.Named("out", sql.Out{Dest: &doubled}), &status)
	must(err)
	check(doubled == 42 && status == 3, "output and status", doubled, status)
	var out string
	_, err = db.Exec("SET @out = CONCAT(@in, N'-out')", sql.Named("in", "in"), sql.Named("out", sql.Out{Dest: &out}))
	must(err)
	same("output parameter", out, "in-out")
}

func transactions(db *sql.DB) {
	_, err := db.Exec("CREATE TABLE dbo.go_tx (id int NOT NULL PRIMARY KEY)")
	must(err)
	count := func() int64 { return one(db, "SELECT COUNT(*) FROM dbo.go_tx").(int64) }
	for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
		must(err)
		_, err = tx.Exec("INSERT INTO dbo.go_tx VALUES (1), (2)")
		must(err)
		var depth int
		must(tx.QueryRow("SELECT @@TRANCOUNT").Scan(&depth))
		same("depth", depth, 1)
		must(tx.Rollback())
		same("rolled back", count(), int64(0))
	}
	tx, err := db.Begin()
	must(err)
	_, err = tx.Exec("INSERT INTO dbo.go_tx VALUES (1)")
	must(err)
	_, err = tx.Exec("SAVE TRANSACTION here; INSERT INTO dbo.go_tx VALUES (2); ROLLBACK TRANSACTION here")
	must(err)
	// A duplicate key ends its statement, not the transaction.
	_, err = tx.Exec("INSERT INTO dbo.go_tx VALUES (1)")
	failsWith(2627, err)
	_, err = tx.Exec("INSERT INTO dbo.go_tx VALUES (3)")
	must(err)
	must(tx.Commit())
	same("committed", count(), int64(2))

	// With XACT_ABORT it ends the transaction as well.
	connection, err := db.Conn(context.Background())
	must(err)
	defer connection.Close()
	_, err = connection.ExecContext(context.Background(), "SET XACT_ABORT ON; BEGIN TRANSACTION; INSERT INTO dbo.go_tx VALUES (4), (4)")
	failsWith(2627, err)
	var depth int
	must(connection.QueryRowContext(context.Background(), "SELECT @@TRANCOUNT").Scan(&depth))
	same("depth after XACT_ABORT", depth, 0)
	same("after XACT_ABORT", count(), int64(2))
}

func failures(db *sql.DB) {
	for _, c := range []struct {
		number int32
		query  string
	}{
		{208, "SELECT * FROM dbo.nowhere"},
		{207, "SELECT nothing FROM dbo.go_tx"},
		{102, "SELECT 1 +"},
		{156, "SELECT FROM"},
		{8134, "SELECT 1 / 0"},
		{245, "SELECT CAST('x' AS int)"},
		{220, "SELECT CAST(256 AS tinyint)"},
		{8115, "SELECT CAST(2147483648 AS int)"},
		{241, "SELECT CAST('2023-02-30' AS date)"},
		{515, "INSERT INTO dbo.go_tx VALUES (NULL)"},
		{2627, "INSERT INTO dbo.go_tx VALUES (1)"},
		{2714, "CREATE TABLE dbo.go_tx (id int)"},
		{3701, "DROP TABLE dbo.nowhere"},
		{2812, "EXEC dbo.nothing"},
		{137, "SELECT @undeclared"},
		{50000, "RAISERROR(N'said', 16, 1)"},
		{51234, "THROW 51234, N'thrown', 2"},
		{3902, "COMMIT"},
		{3903, "ROLLBACK"},
		{2628, "CREATE TABLE #s (a varchar(2)); INSERT INTO #s VALUES ('abc')"},
	} {
		// A query reads the response to its end, so errors behind rows are seen too.
		rows, err := db.Query(c.query)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
		}
		failsWith(c.number, err)
	}
	var failure mssql.Error
	_, err := db.Exec("THROW 51234, N'thrown', 2")
	check(errors.As(err, &failure) && failure.State == 2 && failure.Class == 16 && failure.Message == "thrown", "error fields", failure)
	same("caught", one(db, "BEGIN TRY DECLARE @x int = 1 / 0 END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH"), int64(8134))

	// The driver sends an attention and reads its acknowledgement; the session is of use after it.
	connection, err := db.Conn(context.Background())
	must(err)
	defer connection.Close()
	_, err = connection.ExecContext(context.Background(), "CREATE TABLE #kept (id int); INSERT INTO #kept VALUES (1)")
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer time.AfterFunc(200*time.Millisecond, cancel).Stop()
	_, err = connection.ExecContext(ctx, "WAITFOR DELAY '00:01:00'")
	check(errors.Is(err, context.Canceled), "cancelled", err)
	err = connection.PingContext(context.Background())
	check(err == nil, "the session lives on", err)
	var kept int
	must(connection.QueryRowContext(context.Background(), "SELECT COUNT(*) FROM #kept").Scan(&kept))
	same("its temporary table", kept, 1)
}

// bulk: CopyIn of every type, NULLs included, and its read back; what is not committed is not there.
func bulk(db *sql.DB) {
	names, declared := []string{"id"}, []string{"id int NOT NULL"}
	var columns []typed
	for index, t := range types {
		// The bulk copy of this driver converts texts to varchar without regard to the code page.
		if t.name == "varchar(10)" {
			continue
		}
		name := fmt.Sprintf("c]%d", index)
		names = append(names, name)
		declared = append(declared, fmt.Sprintf("[%s] %s NULL", strings.ReplaceAll(name, "]", "]]"), t.name))
		columns = append(columns, t)
	}
	_, err := db.Exec("CREATE TABLE dbo.go_bulk (" + strings.Join(declared, ", ") + ")")
	must(err)
	const rowCount = 500
	row := func(id int) []any {
		out := []any{id}
		for index, t := range columns {
			switch text, isBytes := t.value.([]byte); {
			case (id+index)%7 == 0:
				out = append(out, nil)
			case isBytes && strings.ContainsAny(t.name[:1], "dnms"):
				out = append(out, string(text))
			case strings.HasSuffix(t.name, "(max)") && id > 3:
				// Long ones in a few rows only.
				if isBytes {
					out = append(out, []byte(fmt.Sprint("bytes ", id)))
				} else {
					out = append(out, fmt.Sprint("text ", id))
				}
			default:
				out = append(out, t.value)
			}
		}
		return out
	}
	copyIn := func(tx *sql.Tx, options mssql.BulkOptions) int64 {
		statement, err := tx.Prepare(mssql.CopyIn("dbo.go_bulk", options, names...))
		must(err)
		for id := range rowCount {
			_, err = statement.Exec(row(id)...)
			must(err)
		}
		result, err := statement.Exec()
		must(err)
		must(statement.Close())
		count, err := result.RowsAffected()
		must(err)
		return count
	}
	tx, err := db.Begin()
	must(err)
	same("copied", copyIn(tx, mssql.BulkOptions{Tablock: true, RowsPerBatch: rowCount}), int64(rowCount))
	must(tx.Rollback())
	same("rolled back", one(db, "SELECT COUNT_BIG(*) FROM dbo.go_bulk"), int64(0))

	tx, err = db.Begin()
	must(err)
	same("copied again", copyIn(tx, mssql.BulkOptions{KeepNulls: true, CheckConstraints: true}), int64(rowCount))
	must(tx.Commit())
	rows, err := db.Query("SELECT * FROM dbo.go_bulk ORDER BY id")
	must(err)
	seen := 0
	for rows.Next() {
		back := make([]any, len(names))
		into := make([]any, len(names))
		for index := range back {
			into[index] = &back[index]
		}
		must(rows.Scan(into...))
		for index, sent := range row(seen) {
			what := fmt.Sprintf("row %d, column %d", seen, index)
			if index == 0 {
				same(what, back[0], int64(seen))
				continue
			}
			if text, is := sent.(string); is {
				if _, is := columns[index-1].value.([]byte); is {
					sent = []byte(text)
				}
			}
			same(what+" "+columns[index-1].name, back[index], sent)
		}
		seen++
	}
	must(rows.Err())
	same("rows", seen, rowCount)

	// A row that the table does not take: nothing of the batch stays.
	_, err = db.Exec("CREATE TABLE dbo.go_keyed (id int NOT NULL PRIMARY KEY, name nvarchar(3) NULL)")
	must(err)
	tx, err = db.Begin()
	must(err)
	statement, err := tx.Prepare(mssql.CopyIn("dbo.go_keyed", mssql.BulkOptions{}, "id", "name"))
	must(err)
	for _, id := range []int{1, 2, 1} {
		_, err = statement.Exec(id, "n")
		must(err)
	}
	_, err = statement.Exec()
	failsWith(2627, err)
	must(tx.Rollback())
	same("none of it", one(db, "SELECT COUNT(*) FROM dbo.go_keyed"), int64(0))
}

func logins(db *sql.DB) {
	same("database", one(db, "SELECT DB_NAME()"), os.Args[5])
	same("login", one(db, "SELECT SUSER_SNAME()"), os.Args[3])
	same("program", one(db, "SELECT APP_NAME()"), "go client")
	wrong := open("localhost", "not "+os.Args[4])
	failsWith(18456, wrong.Ping())
	must(wrong.Close())
	foreign := open("elsewhere.example", os.Args[4])
	err := foreign.Ping()
	check(err != nil && strings.Contains(err.Error(), "certificate"), "another name", err)
	must(foreign.Close())
}

func main() {
	db := open("localhost", os.Args[4])
	must(db.Ping())
	logins(db)
	values(db)
	writes(db)
	transactions(db)
	failures(db)
	bulk(db)
	must(db.Close())
}
