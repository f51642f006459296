//! The image: same input, same bytes; the listed files and no others; what the Dockerfile says; and it runs under containerd.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use testkit::image::{Configuration, Image, ImageName, Input, Rootfs, USER, build, stage};

const NAME: &str = "native-transfer:it";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Folder of the product's binaries: the one that the running test was built into. They are built where they are missing.
fn bin_dir() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let own = std::env::current_exe().unwrap();
        // target/PROFILE/deps/it-HASH
        let profile = own.ancestors().nth(2).unwrap();
        if ["native-transfer", "native-transfer-operator"].iter().any(|name| !profile.join(name).exists()) {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--package", "cli", "--package", "operator", "--manifest-path"]);
            build.arg(repository().join("Cargo.toml")).arg("--target-dir").arg(profile.parent().unwrap());
            if profile.file_name().is_some_and(|name| name == "release") {
                build.arg("--release");
            }
            assert!(build.status().unwrap().success(), "the product builds");
        }
        profile.to_owned()
    })
}

fn input() -> Input {
    Input {
        bin_dir: bin_dir().to_owned(),
        binaries: vec!["native-transfer".into(), "native-transfer-operator".into()],
        ca_bundle: "/etc/ssl/certs/ca-certificates.crt".into(),
        epoch: 0,
    }
}

fn build_to(folder: &Path, input: &Input) -> (PathBuf, Image) {
    let output = folder.join("image.tar");
    let name: ImageName = NAME.parse().unwrap();
    let image = build(input, &name, &output).unwrap();
    (output, image)
}

/// The bytes of the product's archive, and what was said of it.
fn product() -> &'static (Vec<u8>, Image) {
    static PRODUCT: OnceLock<(Vec<u8>, Image)> = OnceLock::new();
    PRODUCT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let (path, image) = build_to(folder.path(), &input());
        (fs::read(path).unwrap(), image)
    })
}

/// Files of a tar: path -> (header, content).
fn untar(bytes: &[u8]) -> BTreeMap<String, (tar::Header, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let read = |mut entry: tar::Entry<'_, &[u8]>| {
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path().unwrap().to_str().unwrap().trim_end_matches('/').to_owned(), (entry.header().clone(), content))
    };
    archive.entries().unwrap().map(|entry| read(entry.unwrap())).collect()
}

fn json(files: &BTreeMap<String, (tar::Header, Vec<u8>)>, path: &str) -> Value {
    serde_json::from_slice(&files[path].1).unwrap()
}

/// Where a digest of the archive is kept; the content is checked against it.
fn blob<'a>(files: &'a BTreeMap<String, (tar::Header, Vec<u8>)>, descriptor: &Value) -> &'a [u8] {
    let digest = descriptor["digest"].as_str().unwrap();
    let content = &files[&format!("blobs/{}", digest.replace(':', "/"))].1;
    assert_eq!(digest, format!("sha256:{}", hex(content)));
    assert_eq!(descriptor["size"].as_u64().unwrap(), content.len() as u64);
    content
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Manifest, configuration and layer of an archive, by its OCI index.
fn opened(archive: &[u8]) -> (Value, Value, Vec<u8>) {
    let files = untar(archive);
    let index = json(&files, "index.json");
    let manifest: Value = serde_json::from_slice(blob(&files, &index["manifests"][0])).unwrap();
    let config: Value = serde_json::from_slice(blob(&files, &manifest["config"])).unwrap();
    let layer = blob(&files, &manifest["layers"][0]).to_vec();
    assert_eq!(config["rootfs"]["diff_ids"][0].as_str().unwrap(), format!("sha256:{}", hex(&layer)));
    (index, config, layer)
}

/// A tar entry as image/files.txt writes it.
fn line(path: &str, header: &tar::Header) -> String {
    match header.entry_type() {
        tar::EntryType::Symlink => {
            format!("link /{path} -> {}", header.link_name().unwrap().unwrap().display())
        }
        _ => format!("{:04o} /{path}", header.mode().unwrap()),
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (first, image) = product();
    // Copies with other times and modes, in another folder: the same content.
    let other = tempfile::tempdir().unwrap();
    for name in ["native-transfer", "native-transfer-operator"] {
        fs::copy(bin_dir().join(name), other.path().join(name)).unwrap();
    }
    let copied = Input { bin_dir: other.path().to_owned(), ..input() };
    let (second, again) = build_to(other.path(), &copied);
    assert!(*first == fs::read(second).unwrap(), "the archives differ");
    assert_eq!(image.digest, again.digest);
    assert_eq!(image.bytes, first.len() as u64);

    let later = Input { epoch: 1_700_000_000, ..copied };
    let (third, later) = build_to(other.path(), &later);
    assert_ne!(image.digest, later.digest);
    let (_, config, _) = opened(&fs::read(third).unwrap());
    assert_eq!(config["created"], "2023-11-14T22:13:20Z");
}

#[test]
fn the_archive_is_an_oci_layout_and_a_docker_archive_of_one_image() {
    let (archive, image) = product();
    let (index, config, layer) = opened(archive);
    assert_eq!(image.name, "docker.io/library/native-transfer:it");
    assert_eq!(index["manifests"][0]["digest"], image.digest.as_str());
    assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], image.name.as_str());
    assert_eq!(config["config"]["User"], USER);

    let files = untar(archive);
    let docker = json(&files, "manifest.json");
    assert_eq!(docker[0]["RepoTags"][0], NAME);
    assert_eq!(files[docker[0]["Layers"][0].as_str().unwrap()].1, layer);
    let named: Value = serde_json::from_slice(&files[docker[0]["Config"].as_str().unwrap()].1).unwrap();
    assert_eq!(named, config);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_layer_holds_the_listed_files_and_no_others() {
    let (_, _, layer) = opened(&product().0);
    let files = untar(&layer);
    for (path, (header, _)) in &files {
        let owner = (header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap());
        assert_eq!(owner, (0, 0, 0), "{path}");
    }
    let found: BTreeSet<String> = files.iter().map(|(path, (header, _))| line(path, header)).collect();
    let listed = fs::read_to_string(repository().join("image/files.txt")).unwrap();
    let listed: BTreeSet<String> = listed.lines().filter(|line| !line.starts_with('#')).map(String::from).collect();
    assert_eq!(found, listed);
}

/// The last stage of the Dockerfile: `(instruction, argument)`.
fn last_stage() -> (String, Vec<(String, String)>) {
    let text = fs::read_to_string(repository().join("Dockerfile")).unwrap();
    let at = text.rfind("\nFROM ").unwrap();
    let stage = text[at + 1..].lines().filter(|line| !line.is_empty());
    let split = |line: &str| line.split_once(' ').map(|(word, rest)| (word.to_owned(), rest.to_owned())).unwrap();
    (text[..at].to_owned(), stage.map(split).collect())
}

#[test]
fn the_dockerfile_copies_the_same_files_and_says_the_same_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let input = input();
    let (_, config, layer) = opened(&product().0);
    let staged = stage(&Rootfs::assemble(&input).unwrap(), folder.path()).unwrap();

    // What COPY would take from the folder that the build stage makes.
    let (build_stage, stage) = last_stage();
    let copies: Vec<&str> = stage.iter().filter(|(word, _)| word == "COPY").map(|(_, rest)| rest.as_str()).collect();
    assert_eq!(copies, ["--from=build /image/rootfs/ /"]);
    assert!(build_stage.contains("image stage --output /image "), "the build stage makes /image/rootfs");
    let files = untar(&layer);
    let mut compared = 0;
    for (path, (header, content)) in &files {
        let place = staged.rootfs.join(path);
        let metadata = fs::symlink_metadata(&place).unwrap();
        match header.entry_type() {
            tar::EntryType::Symlink => {
                assert_eq!(fs::read_link(&place).unwrap(), header.link_name().unwrap().unwrap(), "{path}");
            }
            kind => {
                use std::os::unix::fs::PermissionsExt as _;
                assert_eq!(metadata.permissions().mode() & 0o7777, header.mode().unwrap(), "{path}");
                assert_eq!(metadata.is_dir(), kind.is_dir(), "{path}");
                if metadata.is_file() {
                    assert_eq!(hex(&fs::read(&place).unwrap()), hex(content), "{path}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, staged.files);
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet"]).arg(&staged.sums).current_dir(&staged.rootfs);
    assert!(check.status().unwrap().success(), "the list of digests is right");
    assert_eq!(fs::read_to_string(&staged.sums).unwrap().lines().count(), compared);

    // Everything else that an image is.
    let said = |word: &str| -> Vec<String> {
        stage.iter().filter(|(known, _)| known == word).map(|(_, rest)| rest.clone()).collect()
    };
    let one = |word: &str| said(word).remove(0);
    let expected = Configuration::of(&input);
    assert_eq!(one("USER"), expected.user);
    assert_eq!(serde_json::from_str::<Vec<String>>(&one("ENTRYPOINT")).unwrap(), expected.entrypoint);
    assert_eq!(said("ENV"), expected.environment);
    let labels: Vec<String> = expected.labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
    assert_eq!(said("LABEL"), labels);
    assert_eq!(one("WORKDIR"), config["config"]["WorkingDir"].as_str().unwrap());
    let known = ["FROM", "LABEL", "ENV", "COPY", "USER", "WORKDIR", "ENTRYPOINT"];
    assert!(stage.iter().all(|(word, _)| known.contains(&word.as_str())), "an instruction that is not compared");
}

/// A containerd of its own. Needs root, containerd and runc.
struct Containerd {
    child: Child,
    folder: tempfile::TempDir,
}

impl Containerd {
    fn start() -> Containerd {
        assert!(rustix::process::geteuid().is_root(), "this test runs containers, for which it must be root");
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let config = format!(
            "version = 2\nroot = {:?}\nstate = {:?}\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = {:?}\n",
            at("root"),
            at("state"),
            at("s")
        );
        fs::write(folder.path().join("config.toml"), config).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new("containerd")
            .arg("--config")
            .arg(folder.path().join("config.toml"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("containerd starts");
        let mut containerd = Containerd { child, folder };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !containerd.ctr(&["version"]).status.success() {
            assert!(containerd.child.try_wait().unwrap().is_none(), "containerd ended: {}", containerd.log());
            assert!(Instant::now() < deadline, "containerd is not ready: {}", containerd.log());
            // Polls a foreign server that has no way to say when it is ready.
            std::thread::sleep(Duration::from_millis(50));
        }
        containerd
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn ctr(&self, arguments: &[&str]) -> Output {
        let mut ctr = Command::new("ctr");
        ctr.arg("--address").arg(self.folder.path().join("s")).args(["--namespace", "k8s.io"]).args(arguments);
        ctr.output().expect("ctr starts")
    }

    /// Runs `command` as the image says, on a read-only root without capabilities. Binds are `(here, there)`.
    fn run(&self, image: &str, id: &str, binds: &[(&Path, &str)], command: &[&str]) -> Output {
        let mut arguments = vec!["run".to_owned(), "--rm".into(), "--read-only".into()];
        for (here, there) in binds {
            let here = here.display();
            arguments.extend(["--mount".into(), format!("type=bind,src={here},dst={there},options=rbind:ro")]);
        }
        arguments.extend([image.to_owned(), id.to_owned()]);
        arguments.extend(command.iter().map(|&word| word.to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.ctr(&arguments)
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.child);
        // Best effort in a destructor; the process may be gone already.
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.child.wait();
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
#[ignore = "needs root and containerd, which `testkit cluster up` installs: cargo test -p testkit --test it -- --ignored"]
fn containerd_runs_it_without_a_shell_as_65532_on_a_read_only_root() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, image) = product();
    let archive = folder.path().join("product.tar");
    fs::write(&archive, bytes).unwrap();
    let containerd = Containerd::start();
    let import = containerd.ctr(&["images", "import", archive.to_str().unwrap()]);
    assert!(import.status.success(), "{}", text(&import));
    let list = text(&containerd.ctr(&["images", "list"]));
    assert!(list.contains(&image.name) && list.contains(&image.digest), "{list}");

    let version = containerd.run(&image.name, "version", &[], &["/usr/bin/native-transfer", "--version"]);
    assert!(version.status.success() && text(&version).starts_with("native-transfer "), "{}", text(&version));
    let crd = containerd.run(&image.name, "crd", &[], &["/usr/bin/native-transfer-operator", "crd"]);
    assert!(crd.status.success() && text(&crd).contains("kind: CustomResourceDefinition"), "{}", text(&crd));
    let examples = fs::canonicalize(repository().join("docs/examples")).unwrap();
    let plan = ["/usr/bin/native-transfer", "plan", "-f", "/examples/flights-day.yaml", "--format", "json"];
    let plan = containerd.run(&image.name, "plan", &[(&examples, "/examples")], &plan);
    assert!(plan.status.success(), "{}", text(&plan));
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert!(plan.is_object(), "{plan}");
    let shell = containerd.run(&image.name, "shell", &[], &["/bin/sh"]);
    assert!(!shell.status.success() && text(&shell).contains("no such file"), "{}", text(&shell));

    // Foreign programs in an image made the same way say what a process of it is, and that host names resolve: the resolver
    // is part of the C library, and /etc/hosts is what a kubelet mounts.
    let tools =
        Input { bin_dir: "/usr/bin".into(), binaries: vec!["id".into(), "getent".into(), "touch".into()], ..input() };
    let archive = folder.path().join("tools.tar");
    let tools = build(&tools, &"tools:it".parse().unwrap(), &archive).unwrap();
    let import = containerd.ctr(&["images", "import", archive.to_str().unwrap()]);
    assert!(import.status.success(), "{}", text(&import));
    let id = containerd.run(&tools.name, "id", &[], &["/usr/bin/id"]);
    assert_eq!(text(&id).trim(), "uid=65532 gid=65532 groups=65532");
    let touch = containerd.run(&tools.name, "touch", &[], &["/usr/bin/touch", "/tmp/x"]);
    assert!(text(&touch).contains("Read-only file system"), "{}", text(&touch));
    let hosts = folder.path().join("hosts");
    fs::write(&hosts, "192.0.2.7 planted.example\n").unwrap();
    let names = containerd.run(
        &tools.name,
        "names",
        &[(&hosts, "/etc/hosts")],
        &["/usr/bin/getent", "ahosts", "planted.example"],
    );
    assert!(text(&names).starts_with("192.0.2.7"), "{}", text(&names));
}
