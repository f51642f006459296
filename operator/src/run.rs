//! `native-transfer-operator run`: probes, the leader's Lease, then one controller per watched namespace.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use clap::Args;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{Api, ListParams, PartialObjectMeta};
use kube::client::ClientBuilder;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, watcher};
use kube::{Client, Config, ResourceExt};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::api::{ApiError, call};
use crate::crd::NativeTransfer;
use crate::crd::spec::ImagePullPolicy;
use crate::events::Events;
use crate::health::{self, Health};
use crate::lease::{self, Elector};
use crate::names;
use crate::reconcile::reconciler::{Context, reconcile};
use crate::reconcile::validate::{Defaults, ImagePrefix};

/// How often the API server is asked whether it serves our resource.
const ASK: Duration = Duration::from_secs(20);

/// The same while it does not.
const ASK_MISSING: Duration = Duration::from_secs(5);

/// A failed reconcile is repeated after this; the client has no retries of its own.
const AFTER_ERROR: Duration = Duration::from_secs(5);

/// How long reconciles may take to end when the process is asked to. The Lease is renewed meanwhile; should that fail, it is
/// still ours for longer than this.
const GRACE: Duration = Duration::from_secs(12);

/// Options of `run`.
#[derive(Debug, Args)]
pub struct Options {
    /// Namespace to watch; may be repeated. Every namespace where absent.
    #[arg(long = "watch-namespace", visible_alias = "namespace", env = "WATCH_NAMESPACES", value_delimiter = ',')]
    namespaces: Vec<String>,
    /// Image of worker pods where a resource names none.
    #[arg(long, env = "WORKER_IMAGE")]
    worker_image: String,
    /// When that image is pulled: Always, IfNotPresent or Never; the kubelet's rule where absent.
    #[arg(long, env = "WORKER_IMAGE_PULL_POLICY", value_parser = pull_policy)]
    worker_image_pull_policy: Option<ImagePullPolicy>,
    /// Secret with credentials of that image's registry, in each transfer's namespace; may be repeated.
    #[arg(long = "worker-image-pull-secret")]
    worker_image_pull_secrets: Vec<String>,
    /// Beginning of names of further images that a resource may choose in spec.workers.image, in whole parts, such as
    /// registry.example/team; may be repeated. None but the worker image where absent.
    #[arg(long = "allowed-worker-image-prefix", value_parser = ImagePrefix::new)]
    allowed_worker_image_prefixes: Vec<ImagePrefix>,
    /// Namespace of the leader's Lease: the operator's own.
    #[arg(long, env = "POD_NAMESPACE")]
    lease_namespace: String,
    /// Name of the leader's Lease: one for each set of operators that must not work at the same time.
    #[arg(long, default_value = lease::NAME)]
    lease_name: String,
    /// Transfers that are reconciled at the same time.
    #[arg(long, default_value = "8")]
    max_concurrent: NonZeroU16,
    /// Name of this process, another one in every process; the host's name, which is the pod's, where absent.
    #[arg(long, env = "POD_NAME")]
    identity: Option<String>,
    /// Address of /healthz and /readyz.
    #[arg(long, visible_alias = "health-listen", default_value = "0.0.0.0:8081")]
    listen: SocketAddr,
}

fn pull_policy(text: &str) -> Result<ImagePullPolicy, String> {
    [ImagePullPolicy::Always, ImagePullPolicy::IfNotPresent, ImagePullPolicy::Never]
        .into_iter()
        .find(|policy| policy.as_str() == text)
        .ok_or_else(|| "it is Always, IfNotPresent or Never".to_owned())
}

/// Why the operator ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No access to a cluster.
    #[error("no access to a cluster: {0}")]
    Access(String),
    /// The probes' address cannot be used.
    #[error("the address of --listen cannot be used: {0}")]
    Listen(#[source] std::io::Error),
    /// Fail-stop.
    #[error("{0}; this process ends so that another one leads")]
    LeadershipLost(&'static str),
    /// A part that runs for ever has ended.
    #[error("{0} ended unexpectedly")]
    Ended(&'static str),
}

/// Runs until the process is asked to end.
///
/// # Errors
/// [`RunError`]: the process should be started again.
pub async fn run(options: Options) -> Result<(), RunError> {
    let client = client().await?;
    let health = Arc::new(Health::default());
    let listener = TcpListener::bind(options.listen).await.map_err(RunError::Listen)?;
    let mut probes = tokio::spawn(health::serve(listener, Arc::clone(&health)));
    let (stop, stopped) = watch::channel(false);
    let mut ended = terminated()?;
    let mut asking = tokio::spawn(ask_for_ever(client.clone(), options.namespaces.clone(), Arc::clone(&health)));
    let identity = options.identity.clone().unwrap_or_else(own_name);
    let elector = Elector::new(client.clone(), &options.lease_namespace, &options.lease_name, &identity);

    let first = async {
        while health.unready(std::time::Instant::now()).is_some() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        elector.acquire().await;
    };
    tokio::select! {
        () = first => {}
        _ = ended.recv() => return Ok(()),
        _ = &mut probes => return Err(RunError::Ended("the probe server")),
        _ = &mut asking => return Err(RunError::Ended("the question for the resource")),
    }
    tracing::info!(identity, "this process leads");
    health.leading();

    let defaults = Defaults {
        image: options.worker_image.clone(),
        image_pull_policy: options.worker_image_pull_policy,
        image_pull_secrets: options.worker_image_pull_secrets.clone(),
        allowed_images: options.allowed_worker_image_prefixes.clone(),
    };
    let events = Events::new(client.clone(), &identity);
    let context = Arc::new(Context::new(client.clone(), defaults, events));
    let mut controllers = tokio::spawn(control(client, options, context, Arc::clone(&health), stopped));
    let mut hold = std::pin::pin!(elector.hold());
    let verdict = tokio::select! {
        why = &mut hold => Err(RunError::LeadershipLost(why)),
        _ = ended.recv() => Ok(()),
        _ = &mut controllers => Err(RunError::Ended("the controller")),
        _ = &mut probes => Err(RunError::Ended("the probe server")),
        _ = &mut asking => Err(RunError::Ended("the question for the resource")),
    };
    // Fail-stop: a process that does not lead any more does not even finish its calls.
    verdict?;
    // Nobody listens any more only when the controllers have ended already.
    let _ = stop.send(true);
    tokio::select! {
        why = &mut hold => return Err(RunError::LeadershipLost(why)),
        ended = tokio::time::timeout(GRACE, controllers) => if ended.is_err() {
            tracing::warn!("reconciles did not end in time");
        },
    }
    elector.release().await;
    Ok(())
}

/// The host's name, which is the pod's, and the process id: a container that is started again is another process.
fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}-{}", host.trim(), std::process::id())
}

async fn client() -> Result<Client, RunError> {
    let mut config = Config::infer().await.map_err(|error| RunError::Access(error.to_string()))?;
    // It repeats creates as well; what failed is decided again from a new look.
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(5));
    let builder = ClientBuilder::try_from(config).map_err(|error| RunError::Access(error.to_string()))?;
    Ok(builder.build())
}

fn terminated() -> Result<tokio::sync::mpsc::Receiver<()>, RunError> {
    let listen = |kind| signal(kind).map_err(RunError::Listen);
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let (tell, told) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        // A run that has ended already is not told.
        let _ = tell.send(()).await;
    });
    Ok(told)
}

/// Asks again and again whether our resource is served: a missing definition is a state, not a crash.
async fn ask_for_ever(client: Client, namespaces: Vec<String>, health: Arc<Health>) {
    let mut said = None;
    loop {
        let api: Api<NativeTransfer> = match namespaces.first() {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        let served = match call("list transfers", api.list_metadata(&ListParams::default().limit(1))).await {
            Ok(_) => Some(true),
            Err(error) if error.is_absent() => Some(false),
            Err(error) => {
                tracing::warn!(%error, "the API server was asked for transfers");
                None
            }
        };
        if let Some(served) = served {
            health.resource_served(served);
            if !served && said != Some(false) {
                tracing::warn!(
                    "the CustomResourceDefinition nativetransfers.transfer.dpone.io is not installed; waiting for it"
                );
            }
            said = Some(served);
        }
        tokio::time::sleep(if served == Some(true) { ASK } else { ASK_MISSING }).await;
    }
}

/// Runs the controllers until they are told to stop.
async fn control(
    client: Client,
    options: Options,
    context: Arc<Context>,
    health: Arc<Health>,
    stopped: watch::Receiver<bool>,
) {
    let scopes: Vec<Option<String>> = match options.namespaces.as_slice() {
        [] => vec![None],
        namespaces => namespaces.iter().cloned().map(Some).collect(),
    };
    let running = scopes.into_iter().map(|namespace| {
        let mut stopped = stopped.clone();
        let controller = controller(&client, namespace.as_deref(), options.max_concurrent.get(), &context)
            .graceful_shutdown_on(async move {
                // The sender lives as long as the process.
                let _ = stopped.wait_for(|stop| *stop).await;
            });
        let health = Arc::clone(&health);
        controller.run(one, after_error, Arc::clone(&context)).for_each(move |outcome| {
            tell(outcome, &health);
            std::future::ready(())
        })
    });
    futures_util::future::join_all(running).await;
}

fn tell(
    outcome: Result<(ObjectRef<NativeTransfer>, Action), controller::Error<ApiError, watcher::Error>>,
    health: &Health,
) {
    match outcome {
        Ok(_) | Err(controller::Error::ObjectNotFound(_)) => health.watch_heard(),
        Err(controller::Error::ReconcilerFailed(error, transfer)) => {
            health.watch_heard();
            tracing::warn!(%error, transfer = %transfer, "a reconcile failed and is repeated");
        }
        Err(error @ (controller::Error::QueueError(_) | controller::Error::RunnerError(_))) => {
            health.watch_failed();
            tracing::warn!(%error, "a watch failed and is begun again");
        }
    }
}

fn controller(
    client: &Client,
    namespace: Option<&str>,
    concurrency: u16,
    context: &Context,
) -> Controller<NativeTransfer> {
    fn scoped<K>(client: &Client, namespace: Option<&str>) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        }
    }
    let children = watcher::Config::default().labels(names::TRANSFER_UID_LABEL);
    let controller = Controller::new(scoped::<NativeTransfer>(client, namespace), watcher::Config::default());
    let store = controller.store();
    context.stores.lock().unwrap_or_else(PoisonError::into_inner).push(store.clone());
    let (of_pods, of_claims) = (store.clone(), store);
    controller
        .with_config(controller::Config::default().concurrency(concurrency))
        .watches(
            scoped::<PartialObjectMeta<Pod>>(client, namespace),
            children.clone(),
            move |pod: PartialObjectMeta<Pod>| parent(&of_pods, &pod),
        )
        .watches(
            scoped::<PartialObjectMeta<PersistentVolumeClaim>>(client, namespace),
            children,
            move |claim: PartialObjectMeta<PersistentVolumeClaim>| parent(&of_claims, &claim),
        )
}

/// The transfer of a child, found by UID.
fn parent<K: ResourceExt>(store: &Store<NativeTransfer>, child: &K) -> Option<ObjectRef<NativeTransfer>> {
    let uid = child.labels().get(names::TRANSFER_UID_LABEL)?;
    let parent = store.find(|transfer| transfer.metadata.uid.as_ref() == Some(uid))?;
    Some(ObjectRef::from_obj(parent.as_ref()))
}

async fn one(transfer: Arc<NativeTransfer>, context: Arc<Context>) -> Result<Action, ApiError> {
    let namespace = transfer.namespace().unwrap_or_default();
    reconcile(&context, &namespace, &transfer.name_any()).await.map(Action::requeue)
}

fn after_error(_: Arc<NativeTransfer>, _: &ApiError, _: Arc<Context>) -> Action {
    Action::requeue(AFTER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_asked_to_end_is_gone_before_its_lease() {
        // A renewal that fails meanwhile ends it as well, after the same time.
        assert!(GRACE <= lease::RENEW_DEADLINE && lease::RENEW_DEADLINE < lease::DURATION);
    }
}
