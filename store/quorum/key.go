package quorum

import (
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/store/quorum/internal/keyring"
)

// NewKey returns a new key, one line of text without its end: the contents of a KeyFile for a cluster that does not
// exist yet. It is a secret: whoever has it can do everything to the cluster. So a KeyFile is refused if others than
// its owner can write it, or everybody can read it.
func NewKey() string { return keyring.NewKey(time.Now()).String() }

// AddKey returns what a KeyFile is to hold next, to change the key of a cluster: its keys and a new one, in lines with
// comments. Machines that share a key accept each other, so the key is changed without an outage: once all machines
// have been restarted with both keys, all are restarted with the new one alone. The new key has the time of the oldest:
// it is for a cluster that exists. Errors are those of reading the file, and one for a file that is full or for
// clients.
func AddKey(path string) (string, error) {
	keys, err := keyring.ReadFile(path)
	if err != nil {
		return "", err
	}
	if keys.IsClient() {
		return "", fmt.Errorf("%s: it is for clients; want the file of the machines", path)
	}
	if len(keys) == keyring.MaxKeys {
		return "", fmt.Errorf("%s: it has %d keys, and no file has more; first remove those that are no longer used",
			path, len(keys))
	}
	var text strings.Builder
	text.WriteString(addComment)
	for _, k := range keys {
		fmt.Fprintf(&text, "# %s, in use:\n%s\n", k.Fingerprint(), k)
	}
	added := keys.Another()
	fmt.Fprintf(&text, "# %s, the new one:\n%s\n", added.Fingerprint(), added)
	return text.String(), nil
}

// ClientKey returns what a KeyFile of a client is to hold: the keys for clients that follow from those of the machines
// in a file. Whoever has them can read and write what firn keeps, but can't change who keeps it, read a backup or be a
// machine. After a change of the machines' keys there are others. Errors are those of reading the file, and one if it
// is itself for clients.
func ClientKey(path string) (string, error) {
	keys, err := keyring.ReadFile(path)
	if err != nil {
		return "", err
	}
	if keys.IsClient() {
		return "", fmt.Errorf("%s: it is for clients; want the file of the machines", path)
	}
	var text strings.Builder
	for _, k := range keys.ForClients() {
		fmt.Fprintf(&text, "# For clients of a quorum with key %s:\n%s\n", k.Fingerprint(), k)
	}
	return text.String(), nil
}

const addComment = `# Keys of a quorum. Keep them secret.
# To change the key, copy this file to all machines and restart them, one after the other.
# When all of them run with it, remove the lines of the keys in use, and do the same again.
`
