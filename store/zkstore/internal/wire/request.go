package wire

// Request is one request. Each constructor says what it needs.
type Request struct {
	code    int32
	path    string
	data    []byte
	version int32
	flags   int32
	watch   bool
	private bool
	parts   []Request
}

// The codes of requests.
const (
	codeCreated     = 1 // what a Multi answers to codeCreate
	codeDelete      = 2
	codeExists      = 3
	codeGetData     = 4
	codeSetData     = 5
	codeSync        = 9
	codePing        = 11
	codeGetChildren = 12
	codeCheck       = 13
	codeMulti       = 14
	codeCreate      = 15
	codeSASL        = 102
	codeClose       = -11
	codeError       = -1
)

// The kinds of nodes that Create makes.
const (
	Persistent int32 = 0
	Ephemeral  int32 = 1 // it disappears with the session
	Sequential int32 = 2 // the server appends ten digits to the name, which ascend
)

// AnyVersion makes SetData, Delete and Check accept every version of a node that exists.
const AnyVersion int32 = -1

// Exists reads what is known of a node, and with watch asks for an event when the node appears, disappears or
// changes.
func Exists(path string, watch bool) Request {
	return Request{code: codeExists, path: path, watch: watch}
}

// Get reads a node.
func Get(path string) Request { return Request{code: codeGetData, path: path} }

// Children reads the names of a node's children, and with watch asks for an event when one appears or disappears.
func Children(path string, watch bool) Request {
	return Request{code: codeGetChildren, path: path, watch: watch}
}

// Sync has the server catch up with its leader before it answers what is asked next.
func Sync(path string) Request { return Request{code: codeSync, path: path} }

// Create makes a node of this kind. A private one is for those alone who can log in as this client did.
func Create(path string, data []byte, kind int32, private bool) Request {
	return Request{code: codeCreate, path: path, data: data, flags: kind, private: private}
}

// Set replaces the data of a node that has this version.
func Set(path string, data []byte, version int32) Request {
	return Request{code: codeSetData, path: path, data: data, version: version}
}

// Delete removes a node that has this version and no children.
func Delete(path string, version int32) Request {
	return Request{code: codeDelete, path: path, version: version}
}

// Check demands that a node has this version. It is for a Multi.
func Check(path string, version int32) Request {
	return Request{code: codeCheck, path: path, version: version}
}

// Multi is a transaction of Create, Set, Delete and Check: all of them or none.
func Multi(parts ...Request) Request { return Request{code: codeMulti, parts: parts} }

// Writes tells whether the request may change something.
func (r Request) Writes() bool {
	switch r.code {
	case codeCreate, codeSetData, codeDelete, codeMulti, codeClose:
		return true
	}
	return false
}

// Size is how many bytes the request has on the wire, after its length.
func (r Request) Size() int { return len(r.encode(0)) }

// encode writes the request with its header.
func (r Request) encode(xid int32) []byte {
	var w writer
	w.int(xid)
	w.int(r.code)
	r.body(&w)
	return w.buf
}

func (r Request) body(w *writer) {
	switch r.code {
	case codePing, codeClose:
	case codeSASL:
		w.bytes(r.data)
	case codeMulti:
		for _, part := range r.parts {
			header(w, part.code, false)
			part.body(w)
		}
		header(w, -1, true)
	default:
		w.string(r.path)
		r.operands(w)
	}
}

// operands are what follows the path.
func (r Request) operands(w *writer) {
	switch r.code {
	case codeExists, codeGetData, codeGetChildren:
		w.bool(r.watch)
	case codeDelete, codeCheck:
		w.int(r.version)
	case codeSetData:
		w.bytes(r.data)
		w.int(r.version)
	case codeCreate:
		w.bytes(r.data)
		const one, everything = 1, 31
		w.int(one)
		w.int(everything)
		if r.private {
			w.string("auth")
			w.string("")
		} else {
			w.string("world")
			w.string("anyone")
		}
		w.int(r.flags)
	}
}

// header is that of a part of a transaction.
func header(w *writer, code int32, done bool) {
	w.int(code)
	w.bool(done)
	w.int(-1)
}

// Stat is what a server knows of a node.
type Stat struct {
	Created, Modified int64 // the transactions that made it and that wrote it last
	Version           int32 // counts the writes since it was made
	Owner             int64 // the session that an ephemeral node ends with; zero: none
	Children          int64 // the transaction that made or removed a child last
}

// Reply is the answer to a request.
type Reply struct {
	Zxid     int64 // the last transaction that the server has applied; that of a write at least
	Err      Code  // zero: the request succeeded
	Stat     Stat
	Data     []byte
	Children []string
	Path     string  // of the node that was made
	Parts    []Reply // of a Multi, where a Create has no Stat; if one failed, all have failed
}

// Failed is the part of a Multi that made it fail, and its error.
func (r Reply) Failed() (part int, err Code) {
	for i, p := range r.Parts {
		if p.Err != 0 && p.Err != errNotReached {
			return i, p.Err
		}
	}
	return -1, r.Err
}

// decode reads what follows the header of an answer, and checks that it answers the request.
func (r Request) decode(in *reader, reply *Reply) {
	switch r.code {
	case codeExists:
		reply.Stat = r.stat(in)
	case codeGetData:
		reply.Data = in.bytes()
		reply.Stat = r.stat(in)
	case codeGetChildren:
		reply.Children = in.strings()
		reply.Stat = r.stat(in)
	case codeSASL:
		reply.Data = in.bytes()
	case codeMulti:
		reply.Parts = r.decodeParts(in)
	case codeCreate, codeSetData:
		r.decodeWrite(in, r.code, reply)
	}
}

// decodeWrite reads what a write has answered, in the form with this code.
func (r Request) decodeWrite(in *reader, code int32, reply *Reply) {
	switch code {
	case codeCreate:
		reply.Path = in.string()
		reply.Stat = r.stat(in)
	case codeCreated:
		reply.Path = in.string()
	case codeSetData:
		reply.Stat = r.stat(in)
	case codeError:
		reply.Err = Code(in.int())
	}
}

// decodeParts reads the answers to the parts of a transaction: one for each, of its kind, or an error in place of each,
// one of which says why.
func (r Request) decodeParts(in *reader) []Reply {
	all := make([]Reply, 0, len(r.parts))
	failed := 0
	for {
		code, done, _ := in.int(), in.bool(), in.int()
		if done || in.err != nil {
			break
		}
		if len(all) == len(r.parts) {
			in.fail("more parts of a transaction than the %d that it has", len(r.parts))
			break
		}
		asked := r.parts[len(all)]
		switch {
		case code == codeError:
			failed++
		case code != asked.code && (code != codeCreated || asked.code != codeCreate):
			in.fail("part %d of a transaction as one of code %d; want %d", len(all), code, asked.code)
		}
		var part Reply
		asked.decodeWrite(in, code, &part)
		all = append(all, part)
	}
	_, why := Reply{Parts: all}.Failed()
	switch {
	case len(all) != len(r.parts):
		in.fail("%d parts of a transaction; want %d", len(all), len(r.parts))
	case failed > 0 && (failed < len(all) || why == 0):
		in.fail("%d parts of a transaction as failed, of %d; want none, or all with the reason of one",
			failed, len(all))
	}
	if in.err != nil {
		return nil
	}
	return all
}

// stat reads what a server knows of the request's node. Only ZooKeeper's own nodes, such as "/", were made by no
// transaction.
func (r Request) stat(in *reader) (s Stat) {
	s.Created, s.Modified = in.long(), in.long()
	in.take(16) // the wall clock's times
	s.Version = in.int()
	in.take(8) // versions of the children and of the permissions
	s.Owner = in.long()
	in.take(8) // length, number of children
	s.Children = in.long()
	if s.Created < 0 || s.Created == 0 && r.path != "/" || s.Modified < s.Created {
		in.fail("that transaction %d made %.80q, and %d wrote it last; want numbers above zero, in this order",
			s.Created, r.path, s.Modified)
	}
	return s
}
