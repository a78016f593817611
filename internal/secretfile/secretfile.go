// Package secretfile keeps the secret of a node in a file that its user alone can read, by which commands on the same
// machine administer the node. What the secret is good for is the business of package auth.
//
// The first line of the file is what is to be shown; the second says where: the addresses for administrators, and the network
// that they are in.
//
//	firn_...
//	# for 127.0.0.1:9080 in net:[4026531840]
//
// A command reads the file where the server's answer says it is. That answer may come from anybody: another user's process
// can listen at the address while no node does, or at ::1 when a node listens at 127.0.0.1. So the secret is shown only at an
// address that the file itself names, and only in the same network. Whoever can listen there is the node whose secret it
// is, or comes when that node is gone, and its secret is good for nothing.
package secretfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/firn-id/firn/internal/server/auth"
)

// Name is that of the file in a data directory.
const Name = "admin.token"

// head begins the second line.
const head = "# for "

// network tells the networks of this machine apart: 127.0.0.1 in a container is not that outside.
func network() string {
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil { // it is not Linux, or can't be told
		return "-"
	}
	return name
}

// parse reads what the file of a secret says: the token, and the addresses in this network at which it may be shown.
func parse(text string) (token string, addresses []netip.AddrPort, err error) {
	token, rest, _ := strings.Cut(text, "\n")
	line, _, _ := strings.Cut(rest, "\n")
	list, in, ok := strings.Cut(strings.TrimPrefix(line, head), " in ")
	if !strings.HasPrefix(token, "firn_") || auth.CheckToken(token) != nil || !ok || !strings.HasPrefix(line, head) {
		return "", nil, errors.New("it is not the secret of a node")
	}
	if in != network() {
		return "", nil, errors.New("it is the secret of a node in another network, such as that of a container")
	}
	for text := range strings.FieldsSeq(list) {
		a, err := netip.ParseAddrPort(text)
		if err != nil || !a.Addr().IsLoopback() {
			return "", nil, errors.New("it is not the secret of a node")
		}
		addresses = append(addresses, a)
	}
	return token, addresses, nil
}

// RuntimePath is where the secret of an address goes that has no data beside it: into a directory that this user alone can
// read.
func RuntimePath(address string) (string, error) {
	dir, err := runtimeDir()
	_, port, _ := net.SplitHostPort(address)
	return filepath.Join(dir, "admin-"+port+".token"), err
}

// runtimeDir is a directory for this user alone that need not outlive the process.
func runtimeDir() (string, error) {
	if first, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":"); first != "" { // systemd made it
		return first, nil
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("firn-%d", os.Getuid()))
	if base := os.Getenv("XDG_RUNTIME_DIR"); base != "" {
		dir = filepath.Join(base, "firn")
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", bare(err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", bare(err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s: it is not a directory", dir)
	}
	if err := checkOwn(info); err != nil { // somebody else may have made it
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	return filepath.Abs(dir)
}

// Write puts a token into a file, in the place of another, which may be shown at these addresses: IP addresses of this
// machine that others can't reach, with their ports.
func Write(path, token string, addresses []string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".admin-*.token") // for its owner only
	if err != nil {
		return bare(err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has another name, when all went well
	_, err = fmt.Fprintf(f, "%s\n%s%s in %s\n", token, head, strings.Join(addresses, " "), network())
	if err := errors.Join(err, f.Close()); err != nil {
		return bare(err)
	}
	return bare(os.Rename(f.Name(), path))
}

// bare is an error of the file system without the name of the file, which need not be the one that matters.
func bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", filepath.Dir(path.Path), path.Err)
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return fmt.Errorf("%s: %w", filepath.Dir(link.New), link.Err)
	}
	return err
}

// Remove removes the file of a secret, unless another node has put its own there, and its directory if nothing else is there.
func Remove(path, token string) {
	if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), token+"\n") {
		_ = os.Remove(path) // what is left is good for nothing
		_ = os.Remove(filepath.Dir(path))
	}
}

// Read reads the secret for a server from the file that its answer names, and tells at which address it may be shown.
func Read(path, server string) (token, address string, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", "", err
	}
	if !auth.Loopback(u.Hostname()) {
		return "", "", errors.New("it is on another machine: copy its first line from there, for --token-file")
	}
	text, err := readOwn(path)
	if err != nil {
		return "", "", err
	}
	token, addresses, err := parse(text)
	if err != nil {
		return "", "", err
	}
	for _, a := range addresses {
		if listensAt(u, a) {
			return token, a.String(), nil
		}
	}
	return "", "", fmt.Errorf("it is for another address than %s", u.Host)
}

// listensAt tells whether a URL means an address on this machine.
func listensAt(u *url.URL, a netip.AddrPort) bool {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.Unmap() != a.Addr() {
		return false
	}
	return net.JoinHostPort(a.Addr().String(), port) == a.String()
}

// readOwn reads a small file that nobody else than its owner can read or change, who is the user of this process, or
// anybody where that is root.
func readOwn(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", errors.New("it is no full path")
	}
	f, err := openFile(path)
	if err != nil {
		return "", reasonOf(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", reasonOf(err)
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	if err := checkOwn(info); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 4<<10))
	return string(text), reasonOf(err)
}

// reasonOf is an error without the path, which is said beside it.
func reasonOf(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
