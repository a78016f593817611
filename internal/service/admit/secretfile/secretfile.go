// Package secretfile keeps the secret of a node in a file that only its user can read, so that commands on the
// same machine can administer the node. Package auth decides what the secret allows.
//
// The first line of the file is the secret; the second has the addresses for administrators, and their network.
//
//	firn_...
//	# for 127.0.0.1:9080 in net:[4026531840]
//
// The server's answer tells a command the path of the file. Anyone may have sent that answer: another user's
// process can listen at the address while no node does, or at ::1 when a node listens at 127.0.0.1. So a command
// sends the secret only to an address that the file itself names, and only in the same network. Only that node
// listens there, or a process that came after it, when the secret is worthless. The address may be that of a Unix
// socket.
package secretfile

import (
	"cmp"
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

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// Name is the name of the file in a data directory.
const Name = "admin.token"

// head begins the second line.
const head = "# for "

// network returns the network namespace of this process: 127.0.0.1 in a container is another address than
// outside.
func network() string {
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil { // not Linux, or not readable
		return "-"
	}
	return name
}

// parse returns the token in a secret's file, and the addresses in this network to which commands may send it.
func parse(text string) (token string, addresses []string, err error) {
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
		_, notUnix := unixsocket.Parse(text)
		if a, err := netip.ParseAddrPort(text); notUnix != nil && (err != nil || !a.Addr().IsLoopback()) {
			return "", nil, errors.New("it is not the secret of a node")
		}
		addresses = append(addresses, text)
	}
	return token, addresses, nil
}

// RuntimePath returns the path of the secret's file for an address of a process without data: in a directory that
// only this user can read.
func RuntimePath(address string) (string, error) {
	dir, err := runtimeDir()
	_, of, notTCP := net.SplitHostPort(address)
	if notTCP != nil || unixsocket.Is(address) {
		of = strings.ReplaceAll(strings.TrimPrefix(address, unixsocket.Scheme), "/", "-")
	}
	return filepath.Join(dir, "admin-"+of+".token"), err
}

// runtimeDir returns a directory for this user alone, which need not outlive the process.
func runtimeDir() (string, error) {
	if made := madeBySystemd(); made != "" {
		return made, nil
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
	if err := checkOwn(info); err != nil { // another user may have made it
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	return filepath.Abs(dir)
}

// madeBySystemd returns the directory that systemd has made for this process; empty: none.
func madeBySystemd() string {
	first, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":")
	return first
}

// Write writes a token to a file, and replaces the file if it exists. Commands may send the token to the given
// addresses: IP addresses of this machine that other machines can't reach, with ports, and Unix sockets. An error is
// returned when others can write the file, or a directory above it.
func Write(path, token string, addresses []string) error {
	if errUnprotected != nil {
		return errUnprotected
	}
	if err := files.CheckWriters(path); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".admin-*.token") // only its owner can read it
	if err != nil {
		return bare(err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // after success it has another name
	_, err = fmt.Fprintf(f, "%s\n%s%s in %s\n", token, head, strings.Join(addresses, " "), network())
	if err := errors.Join(err, f.Close()); err != nil {
		return bare(err)
	}
	return bare(os.Rename(f.Name(), path))
}

// bare returns an error of the file system without the file's name, which may be that of the temporary file.
func bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", filepath.Dir(path.Path), path.Err)
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return fmt.Errorf("%s: %w", filepath.Dir(link.New), link.Err)
	}
	return err
}

// Remove removes the file of a secret, unless another node has written its own there, and the directory if it is
// empty. One that systemd made stays: systemd does not make it again for each start.
func Remove(path, token string) {
	if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), token+"\n") {
		_ = os.Remove(path) // a secret that stays is worthless
		if dir := filepath.Dir(path); dir != madeBySystemd() {
			_ = os.Remove(dir)
		}
	}
}

// Read reads the secret of a server from the file that its answer names, and returns the address to which the
// command may send it.
func Read(path, server string) (token, address string, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", "", err
	}
	if !unixsocket.Is(server) && !auth.Loopback(u.Hostname()) {
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
		if a == server || listensAt(u, a) {
			return token, a, nil
		}
	}
	return "", "", fmt.Errorf("it is for another address than %s", cmp.Or(u.Host, server))
}

// listensAt reports whether a URL means an address on this machine.
func listensAt(u *url.URL, address string) bool {
	a, err := netip.ParseAddrPort(address)
	if err != nil || u.Host == "" {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.Unmap() != a.Addr() {
		return false
	}
	return net.JoinHostPort(a.Addr().String(), port) == a.String()
}

// readOwn reads a small file that only its owner can read or change. The owner must be the user of this process,
// unless that is root.
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

// reasonOf returns an error without the path, which the message has already.
func reasonOf(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
