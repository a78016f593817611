package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Do is what a machine does before its etcd server runs. The zero value is Wait.
type Do uint8

// What a machine does.
const (
	// Wait: ask again after a pause.
	Wait Do = iota
	// Propose: found a cluster. Offer it to each machine of the list, this one first. If they have Agreed, Form here.
	// The others may be told to Form, too; if they are not, they Follow.
	Propose
	// Follow: Form here, as the cluster that this machine has promised is there.
	Follow
	// Run: start the server, with the initial state "new" if the disk is Formed, else with its data. Once there is a
	// log, the disk is Started; an Alone disk is, before others can see this server.
	Run
	// Join: ask for membership; once it is there the disk is Started, without any former data, and then the server
	// starts as a learner. Without a log after that, the disk is Lost.
	Join
	// Client: use the store as a client, and keep nothing. Data that is here is Removed.
	Client
	// SetBack: the data here is older than what others saw, so the disk is Lost.
	SetBack
	// Refuse: end. This lasts until somebody changes the configuration or the disk.
	Refuse
)

func (d Do) String() string {
	return [...]string{"wait", "propose", "follow", "run", "join", "client", "set back", "refuse"}[d]
}

// Decision is what a machine does next.
type Decision struct {
	Do      Do
	Cluster string   // identity of the cluster; "" if Wait or Refuse
	For     []string // the machines that it waits for, in order, if Wait
	Why     string   // in words, for an operator
}

// Decide returns what a machine does next before its server runs. said has what the other machines answered, by
// address: those of its list, and any others that it knows to have joined, and what answers at its own address; who did
// not answer is absent. It must have asked them since its process started. fresh is an identity that nobody has used
// yet.
//
// What the machine then does to its disk, and Accept and Form, exclude each other: if the disk does not say any more
// what it said in me, the machine decides again.
func Decide(me Machine, said map[string]Machine, fresh string) Decision {
	v := view{me: me, fresh: fresh}
	for _, address := range slices.Sorted(maps.Keys(said)) {
		if address != me.Address {
			v.others = append(v.others, said[address])
		}
	}
	for _, address := range without(me.List, []string{me.Address}) {
		if _, ok := said[address]; !ok {
			v.silent = append(v.silent, address)
		}
	}
	if d, found := v.twin(said[me.Address]); found {
		return d
	}
	switch me.Disk.State {
	case Empty, Promised:
		return v.withoutData()
	case Alone:
		return v.alone()
	default:
		return v.withData()
	}
}

// view is what a machine knows when it decides.
type view struct {
	me     Machine
	others []Machine // that answered, ordered by address
	silent []string  // machines of the list that did not answer, in order
	fresh  string
}

// withData decides for a machine that has data, or had.
func (v *view) withData() Decision {
	me, mine := v.me, v.me.Disk.Cluster
	sameData := func(m Machine) bool { return m.Disk.hasData() && m.Disk.Cluster == mine }
	otherData := func(m Machine) bool { return m.Disk.hasData() && m.Disk.Cluster != mine }
	agrees := slices.ContainsFunc(v.others, sameData)
	if i := slices.IndexFunc(v.others, otherData); i >= 0 && !agrees {
		return refuse("this machine is of cluster %s, and %s has %s: give one of them an empty directory, or the "+
			"right one",
			mine, v.others[i].Address, v.others[i].data())
	}
	if by, index := v.saw(); by != "" && me.Disk.hasData() {
		return Decision{Do: SetBack, Cluster: mine, Why: fmt.Sprintf(
			"the data here ends at entry %d, and %s knows that this machine had entry %d: an old copy of the "+
				"directory was put back",
			me.Index, by, index)}
	}
	if d, running := v.running(mine); running && (d.Do == Client || !me.Disk.hasData()) {
		return d
	}
	switch me.Disk.State {
	case Lost:
		return v.wait("the log of cluster %s is gone here: waiting until a majority of its machines lives, to "+
			"get a copy", mine)
	case Removed:
		return Decision{Do: Client, Cluster: mine, Why: fmt.Sprintf("this machine was removed from cluster %s", mine)}
	}
	if len(v.others) == 0 && len(v.silent) > 0 {
		return v.wait("this machine has data of cluster %s: one other machine must say first whether it is still "+
			"the latest", mine)
	}
	return Decision{Do: Run, Cluster: mine, Why: fmt.Sprintf("this machine has data of cluster %s", mine)}
}

// alone decides for a machine that has the data of a quorum of one. It becomes the first machine of a cluster.
func (v *view) alone() Decision {
	if i := slices.IndexFunc(v.others, func(m Machine) bool { return m.Disk.hasData() }); i >= 0 {
		return refuse("this machine has %s, and %s has %s: give one of them an empty directory",
			v.me.data(), v.others[i].Address, v.others[i].data())
	}
	if d, ready := v.allAgree(); !ready {
		return d
	}
	// this one may have, too
	if i := slices.IndexFunc(v.others, func(m Machine) bool { return m.Disk.State == Promised }); i >= 0 {
		m := v.others[i]
		return waitFor(m, "%s has promised to be part of cluster %s, which may still begin: empty its directory",
			m.Address, m.Disk.Cluster)
	}
	return Decision{
		Do: Run, Cluster: v.fresh,
		Why: fmt.Sprintf("the data of this machine becomes cluster %s: no other has any", v.fresh),
	}
}

// withoutData decides for a machine that has never had data, as far as it knows.
func (v *view) withoutData() Decision {
	mine := v.me.Disk.Cluster
	if v.me.Disk.State == Promised {
		if d, running := v.running(mine); running && d.Do == Client {
			return d
		}
		if i := slices.IndexFunc(v.others, func(m Machine) bool {
			return m.Disk.hasData() && m.Disk.Cluster == mine
		}); i >= 0 {
			return Decision{
				Do: Follow, Cluster: mine,
				Why: fmt.Sprintf("%s has formed cluster %s, which this machine has promised",
					v.others[i].Address, mine),
			}
		}
	}
	if d, running := v.running(""); running {
		return d
	}
	if i := slices.IndexFunc(v.others, func(m Machine) bool { return m.Disk.hasData() }); i >= 0 {
		return v.waitForMajority(v.others[i])
	}
	if d, ready := v.allAgree(); !ready {
		return d
	}
	if founder := slices.Min(v.me.List); founder != v.me.Address {
		return Decision{For: []string{founder}, Why: fmt.Sprintf("waiting for %s, which forms the cluster", founder)}
	}
	return Decision{Do: Propose, Cluster: v.fresh, Why: "all machines answer, and none has ever been part of a cluster"}
}

// waitForMajority has the machine wait until the cluster that another has data of runs.
func (v *view) waitForMajority(m Machine) Decision {
	holders, losers := 0, 0
	for _, other := range append(v.others, v.me) {
		switch {
		case other.Disk.Cluster == m.Disk.Cluster && (other.Disk.hasData() || other.Disk.State == Promised):
			holders++
		case other.Disk == (Disk{Lost, m.Disk.Cluster}) || m.Saw[other.Address] > 0 ||
			slices.ContainsFunc(m.Members, func(f Member) bool { return f.Address == other.Address && f.Started }):
			losers++
		}
	}
	if len(v.silent) == 0 && losers > 0 && 2*holders <= len(v.me.List) { // without losers it may be about to grow
		return v.wait("%s has %s, and a majority of the machines has lost it: bring their directories back, or "+
			"restore a backup", m.Address, m.data())
	}
	return v.wait("%s has %s: waiting until a majority of its machines lives, to join them", m.Address, m.data())
}

// running returns what follows from a cluster that runs with a majority, if one is known: that of an identity, or any.
func (v *view) running(cluster string) (d Decision, ok bool) {
	for _, m := range v.others {
		if !m.Running || cluster != "" && m.Disk.Cluster != cluster {
			continue
		}
		isMember := slices.ContainsFunc(m.Members, func(m Member) bool { return m.Address == v.me.Address })
		if v.me.Disk.hasData() && isMember {
			return Decision{}, false // it has a vote until it is removed, and that may be needed
		}
		joins := slices.Contains(m.Record, v.me.Address)
		grows := v.me.Disk.State <= Promised && includes(v.me.List, m.Record) && sameMachines(v.me.List, m.List)
		if joins || grows {
			return Decision{
				Do: Join, Cluster: m.Disk.Cluster,
				Why: fmt.Sprintf("cluster %s runs, and this machine is one of it", m.Disk.Cluster),
			}, true
		}
		d, ok = Decision{Do: Client, Cluster: m.Disk.Cluster, Why: fmt.Sprintf(
			"cluster %s is kept by %s, and not by this machine", m.Disk.Cluster, strings.Join(m.Record, ", "))}, true
	}
	return d, ok
}

// allAgree reports whether a cluster may begin: all machines answer, have the same list, and nothing to lose. If not,
// it returns what the machine waits for. The caller has made sure that nobody else has data.
func (v *view) allAgree() (d Decision, ready bool) {
	if len(v.silent) > 0 {
		return v.wait("no cluster is known, and a new one needs all machines"), false
	}
	for _, m := range v.others {
		switch {
		case !sameMachines(m.List, v.me.List):
			return waitFor(m, "%s has another list of machines (%s): it must be the same everywhere", m.Address,
				strings.Join(m.List, ", ")), false
		case m.Disk.State == Lost || m.Disk.State == Removed:
			return waitFor(m,
				"%s was part of cluster %s, which nobody has data of: restore a backup, or empty its directory",
				m.Address, m.Disk.Cluster), false
		}
	}
	return Decision{}, true
}

// saw returns the machine that knows of the greatest index that this one had, if that is more than it has now.
func (v *view) saw() (by string, index uint64) {
	index = v.me.Index
	for _, m := range v.others {
		if known := m.Saw[v.me.Address]; m.Disk.Cluster == v.me.Disk.Cluster && known > index {
			by, index = m.Address, known
		}
	}
	return by, index
}

// data says in words what data a machine has.
func (m *Machine) data() string {
	if m.Disk.State == Alone {
		return "data of a quorum of one, or of a backup"
	}
	return "data of cluster " + m.Disk.Cluster
}

func (v *view) wait(why string, args ...any) Decision {
	return Decision{For: v.silent, Why: fmt.Sprintf(why, args...)}
}

func waitFor(m Machine, why string, args ...any) Decision {
	return Decision{For: []string{m.Address}, Why: fmt.Sprintf(why, args...)}
}

func refuse(why string, args ...any) Decision {
	return Decision{Do: Refuse, Why: fmt.Sprintf(why, args...)}
}

// Offer is what a founder asks a machine for: to promise the identity of a new cluster.
type Offer struct {
	Cluster string `json:"cluster"`
	Life    string `json:"life"` // that of the machine, when it said what its disk says
	Disk    Disk   `json:"disk"` // what it said
}

// OfferTo returns the offer to a machine, which has said what it is. An identity is offered to each machine once.
func OfferTo(m Machine, cluster string) Offer { return Offer{cluster, m.Life, m.Disk} }

// Accept returns what the disk of a machine says once it has accepted an offer, and whether it accepts: it must still
// be as the founder saw it. The disk is written before the founder is told.
func Accept(me Machine, o Offer) (Disk, bool) {
	asSeen := o.Life == me.Life && o.Disk == me.Disk
	if !asSeen || me.Disk.State > Promised {
		return me.Disk, false
	}
	return Disk{Promised, o.Cluster}, true
}

// Agreed reports whether a founder may Form: all machines of its list have accepted the identity. A majority is not
// enough: of three, one may be down that has data, and another may have been emptied.
func Agreed(list, accepted []string) bool { return includes(accepted, list) }

// Form returns what a disk says once its machine knows that all have promised an identity, and whether that concerns
// it: only a disk that still promises just that identity. Whoever is told late is told for nothing.
func Form(d Disk, cluster string) (Disk, bool) {
	if d != (Disk{Promised, cluster}) {
		return d, false
	}
	return Disk{Formed, cluster}, true
}
