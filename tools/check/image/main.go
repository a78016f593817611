// Image makes a container image by the Dockerfile that firn gen docker prints, without Docker: a file for docker load
// and podman load. It knows the instructions that this Dockerfile has, and refuses any other.
//
//	image NAME PLATFORM VERSION REVISION BINARY < Dockerfile > firn_image.tar
//
// The file is what docker save writes: every version of docker, podman and containerd reads that, and a configuration
// as only OCI has it could not name the health check. The same input gives the same bytes: all times are
// SOURCE_DATE_EPOCH, and the authorities are those of a module, not of this machine.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 5 {
		return fmt.Errorf("%d arguments; want it as in: image NAME PLATFORM VERSION REVISION BINARY", len(args))
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w; want the time of the source in seconds since 1970", err)
	}
	system, architecture, ok := strings.Cut(args[1], "/")
	if !ok {
		return fmt.Errorf("%q is no platform; want one such as linux/amd64", args[1])
	}
	binary, err := os.ReadFile(args[4])
	if err != nil {
		return err
	}
	authorities, err := roots()
	if err != nil {
		return err
	}
	at := time.Unix(seconds, 0).UTC()
	b := newBuilder(at, map[string][]byte{"firn": binary, "ca-certificates.crt": authorities})
	b.image.Platform = ocispec.Platform{OS: system, Architecture: architecture}
	b.image.Config.Labels = map[string]string{
		ocispec.AnnotationTitle: "firn", ocispec.AnnotationLicenses: "Apache-2.0",
		ocispec.AnnotationSource:  "https://github.com/firn-id/firn",
		ocispec.AnnotationVersion: args[2], ocispec.AnnotationRevision: args[3],
		ocispec.AnnotationCreated: at.Format(time.RFC3339),
	}
	if err := b.follow(in); err != nil {
		return err
	}
	return b.save(out, args[0])
}

// roots returns the authorities that Mozilla trusts, as PEM. Those that it trusts for some certificates only are left
// out: a file can't say which.
func roots() ([]byte, error) {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			if err := pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return nil, err
			}
		}
	}
	return all.Bytes(), nil
}

// builder makes an image of one layer.
type builder struct {
	at      time.Time
	context map[string][]byte // what COPY finds
	layer   bytes.Buffer
	files   *tar.Writer // into layer
	made    []string    // directories in it
	image   dockerspec.DockerOCIImage
}

func newBuilder(at time.Time, context map[string][]byte) *builder {
	b := &builder{at: at, context: context}
	b.files = tar.NewWriter(&b.layer)
	b.image.Created = &at
	return b
}

// follow does what the instructions of a Dockerfile say.
func (b *builder) follow(in io.Reader) error {
	parsed, err := parser.Parse(in)
	if err != nil {
		return err
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return err
	}
	if len(stages) != 1 || stages[0].BaseName != "scratch" {
		return errors.New("the image is made from another; want one stage, FROM scratch")
	}
	for _, command := range stages[0].Commands {
		if err := b.do(command); err != nil {
			return fmt.Errorf("%v: %w", command, err)
		}
	}
	return b.files.Close()
}

func (b *builder) do(command instructions.Command) error {
	config := &b.image.Config
	switch c := command.(type) {
	case *instructions.CopyCommand:
		return b.copy(c)
	case *instructions.UserCommand:
		config.User = c.User
	case *instructions.WorkdirCommand:
		config.WorkingDir = c.Path
		return b.directory(c.Path, config.User)
	case *instructions.VolumeCommand:
		config.Volumes = set(config.Volumes, c.Volumes, "")
	case *instructions.ExposeCommand:
		config.ExposedPorts = set(config.ExposedPorts, c.Ports, "/tcp")
	case *instructions.HealthCheckCommand:
		config.Healthcheck = c.Health
	case *instructions.EntrypointCommand:
		config.Entrypoint = c.CmdLine
		return exec(c.PrependShell)
	case *instructions.CmdCommand:
		config.Cmd = c.CmdLine
		return exec(c.PrependShell)
	default:
		return errors.New("this instruction is not known here")
	}
	return nil
}

func exec(shell bool) error {
	if shell {
		return errors.New("the image has no shell; want the words as a JSON array")
	}
	return nil
}

// set adds names to a set, those without a slash with an ending.
func set(names map[string]struct{}, more []string, ending string) map[string]struct{} {
	if names == nil {
		names = map[string]struct{}{}
	}
	for _, name := range more {
		if !strings.Contains(name, "/") {
			name += ending
		}
		names[name] = struct{}{}
	}
	return names
}

// copy copies one file, with its mode.
func (b *builder) copy(c *instructions.CopyCommand) error {
	mode, err := strconv.ParseInt(c.Chmod, 8, 64)
	if err != nil || c.From+c.Chown != "" || len(c.SourcePaths) != 1 || len(c.SourceContents) != 0 ||
		strings.HasSuffix(c.DestPath, "/") {
		return errors.New("want COPY --chmod=MODE FILE FILE")
	}
	content, ok := b.context[c.SourcePaths[0]]
	if !ok {
		return fmt.Errorf("there is no file %s", c.SourcePaths[0])
	}
	if err := b.directory(path.Dir(c.DestPath), ""); err != nil {
		return err
	}
	if err := b.add(&tar.Header{
		Typeflag: tar.TypeReg, Name: c.DestPath[1:], Mode: mode,
		Size: int64(len(content)),
	}); err != nil {
		return err
	}
	_, err = b.files.Write(content)
	return err
}

// directory makes a directory for a user, by number, and those above it for root, unless they are there.
func (b *builder) directory(name, user string) error {
	if name == "/" || slices.Contains(b.made, name) {
		return nil
	}
	if err := b.directory(path.Dir(name), ""); err != nil {
		return err
	}
	b.made = append(b.made, name)
	header := tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: 0o755}
	if user != "" {
		if _, err := fmt.Sscanf(user, "%d:%d", &header.Uid, &header.Gid); err != nil {
			return fmt.Errorf("USER %s: %w; want numbers as in 65532:65532", user, err)
		}
	}
	return b.add(&header)
}

func (b *builder) add(header *tar.Header) error {
	header.ModTime, header.Format = b.at, tar.FormatPAX
	return b.files.WriteHeader(header)
}

// save writes the image under a name such as firn:0.1.0, and as firn:latest. Only the layer is compressed: podman takes
// no file that is compressed as a whole.
func (b *builder) save(out io.Writer, name string) error {
	base, _, _ := strings.Cut(name, ":")
	b.image.RootFS = ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(b.layer.Bytes())}}
	b.image.History = []ocispec.History{{Created: &b.at, CreatedBy: "firn gen docker"}}
	config, err := json.Marshal(b.image)
	if err != nil {
		return err
	}
	var layer bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&layer, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = b.layer.WriteTo(zipped)
	if err := errors.Join(err, zipped.Close()); err != nil {
		return err
	}
	type entry struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	of := entry{
		fmt.Sprintf("%x.json", sha256.Sum256(config)),
		[]string{name, base + ":latest"},
		[]string{fmt.Sprintf("%x.tar.gz", sha256.Sum256(layer.Bytes()))},
	}
	manifest, err := json.Marshal([]entry{of})
	if err != nil {
		return err
	}
	all := tar.NewWriter(out)
	for _, file := range []struct {
		name    string
		content []byte
	}{{"manifest.json", manifest}, {of.Config, config}, {of.Layers[0], layer.Bytes()}} {
		header := tar.Header{
			Typeflag: tar.TypeReg, Name: file.name, Mode: 0o644, Size: int64(len(file.content)),
			ModTime: b.at, Format: tar.FormatPAX,
		}
		if err := all.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := all.Write(file.content); err != nil {
			return err
		}
	}
	return all.Close()
}
