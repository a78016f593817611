package quorum

import (
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/store/quorum/internal/keyring"
)

// NewKey returns a new key, one line of text without its end: the contents of a KeyFile for a cluster that does not exist
// yet. It is a secret: whoever has it can do everything to the cluster. So a KeyFile is refused if others than its owner
// can write it, or everybody can read it.
func NewKey() string { return keyring.NewKey(time.Now()).String() }

// AddKey returns what a KeyFile is to hold next, to change the key of a cluster: its keys and a new one, in lines with
// comments. Machines that share a key accept each other, so the key is changed without an outage: once all machines have
// been restarted with both keys, all are restarted with the new one alone. The new key has the time of the oldest: it is
// for a cluster that exists. Errors are those of reading the file, and one for a file that is full.
func AddKey(path string) (string, error) {
	keys, err := keyring.ReadFile(path)
	if err != nil {
		return "", err
	}
	if len(keys) == keyring.MaxKeys {
		return "", fmt.Errorf("%s: it has %d keys, and no file has more; first remove those that are no longer used", path, len(keys))
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

const addComment = `# Keys of a quorum. Keep them secret.
# To change the key, copy this file to all machines and restart them, one after the other.
# When all of them run with it, remove the lines of the keys in use, and do the same again.
`
