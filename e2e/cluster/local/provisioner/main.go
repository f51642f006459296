// Provisioner makes a local PersistentVolume for each claim of the test cluster's storage class, and removes it when
// its claim is gone.
//
// It follows the contract of external provisioners: kube-controller-manager marks a claim with the class's provisioner,
// the scheduler marks it with the node that its first pod goes to, and the volume that answers it names the claim in its
// claimRef. The volume lists exactly the access modes of the claim, because ReadWriteOncePod stands beside no other.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	provisionerName       = "testkit.native-transfer/local"
	annStorageProvisioner = "volume.kubernetes.io/storage-provisioner"
	annSelectedNode       = "volume.kubernetes.io/selected-node"
	annProvisionedBy      = "pv.kubernetes.io/provisioned-by"
	// retryAfter is the time after which everything is looked at again even if nothing changed: a failed call is
	// repeated then.
	retryAfter = 2 * time.Second
	// callMax is the longest time of one call to the API server.
	callMax = 10 * time.Second
)

type provisioner struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	dir     string
	node    string
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how the API server is reached")
	dir := flag.String("dir", "", "folder of the volumes")
	node := flag.String("node", "", "name of the node that sees the folder")
	flag.Parse()
	if *kubeconfig == "" || *dir == "" || *node == "" {
		fmt.Fprintln(os.Stderr, "provisioner: --kubeconfig, --dir and --node are needed")
		os.Exit(2)
	}
	if err := run(*kubeconfig, *dir, *node); err != nil {
		fmt.Fprintln(os.Stderr, "provisioner:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, dir, node string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	factory := informers.NewSharedInformerFactory(client, 0)
	p := &provisioner{
		client:  client,
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		dir:     dir,
		node:    node,
	}
	// One slot: a change during a round asks for exactly one more.
	changed := make(chan struct{}, 1)
	note := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, new any) { note(new) }, DeleteFunc: note}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().PersistentVolumeClaims().Informer(),
		factory.Core().V1().PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	retry := time.NewTicker(retryAfter)
	defer retry.Stop()
	for {
		p.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-retry.C:
		}
	}
}

// round looks at every claim and volume once. What fails is written down and tried again in a later round.
func (p *provisioner) round(ctx context.Context) {
	claims, err := p.claims.List(labels.Everything())
	if err != nil {
		fmt.Fprintln(os.Stderr, "claims:", err)
	}
	for _, claim := range claims {
		if !p.isOurs(claim) {
			continue
		}
		if err := p.provision(ctx, claim); err != nil {
			fmt.Fprintf(os.Stderr, "claim %s/%s: %v\n", claim.Namespace, claim.Name, err)
		}
	}
	volumes, err := p.volumes.List(labels.Everything())
	if err != nil {
		fmt.Fprintln(os.Stderr, "volumes:", err)
	}
	for _, volume := range volumes {
		if !mustReclaim(volume) {
			continue
		}
		if err := p.reclaim(ctx, volume); err != nil {
			fmt.Fprintf(os.Stderr, "volume %s: %v\n", volume.Name, err)
		}
	}
}

// isOurs says whether a claim waits for a volume of ours on our node.
func (p *provisioner) isOurs(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName == "" &&
		claim.DeletionTimestamp == nil &&
		claim.Spec.StorageClassName != nil &&
		claim.Annotations[annStorageProvisioner] == provisionerName &&
		claim.Annotations[annSelectedNode] == p.node
}

func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	name := "pvc-" + string(claim.UID)
	if _, err := p.volumes.Get(name); err == nil {
		return nil // made; the controller manager has yet to bind it
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return err
	}
	if mode := claim.Spec.VolumeMode; mode != nil && *mode != corev1.PersistentVolumeFilesystem {
		return fmt.Errorf("volume mode %s is not served", *mode)
	}
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, volumeFor(claim, class, name, path, p.node), metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// volumeFor is the volume that answers a claim.
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, name, path, node string) *corev1.PersistentVolume {
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annProvisionedBy: provisionerName}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: policy,
			StorageClassName:              class.Name,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
				}}}},
			}},
		},
	}
}

// mustReclaim says whether a volume of ours has lost its claim and is to be deleted.
func mustReclaim(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[annProvisionedBy] == provisionerName &&
		volume.Status.Phase == corev1.VolumeReleased &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		volume.DeletionTimestamp == nil &&
		volume.Spec.Local != nil
}

// reclaim deletes the folder before the object: a volume that cannot be emptied stays visible.
func (p *provisioner) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	path := volume.Spec.Local.Path
	if filepath.Dir(path) != filepath.Clean(p.dir) {
		return fmt.Errorf("%s is not below %s and is not deleted", path, p.dir)
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	err := p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &volume.UID},
	})
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}
