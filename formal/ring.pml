/*
The ring and the log: join, leave, death and collection. docs/proof.md says what this is and how to run it.

A model in Promela, for the program spin, which visits every state that it can get into. To read it, know this:

  - A process is a loop, do ... od, of options that begin with ::. At any time some process takes one of its options, any
    whose first line, the guard, is true. d_step { } makes the whole option one step.
  - inline names some lines that are used in several places; #define names an expression.
  - if ... fi takes the first branch whose guard is true; else is for none of them.
  - A set of IDs is a byte, with a bit for each ID. IDs are 1, 2, ...; 0 is nobody.

Each rule names the Go function that it stands for. Nothing here is made from the Go code.

Left out: node IDs, sequencers, policies, operators, checkpoints, durations, the line of joiners, and a joiner that takes the
living for dead (the exploration in Go has that). When faults have stopped, the only fairness needed is that a peer whose
session is over finds that out in the end.
*/

/* The bounds. They are set from outside, as in: spin -DPEERS=3 -DCRASHES=2 */
#ifndef PEERS
#define PEERS 3    /* that are there at the beginning; never are there more at a time */
#endif
#ifndef MOST
#define MOST PEERS /* IDs that there may be at a time, of the living and the dead, at most 6 */
#endif
#ifndef LAG
#define LAG 3      /* how many entries the slowest peer may be behind the log, at most 4 */
#endif
#ifndef CRASHES
#define CRASHES 0  /* a peer ends without a word */
#endif
#ifndef LEAVES
#define LEAVES 0   /* a peer leaves by itself */
#endif
#ifndef LOSSES
#define LOSSES 0   /* the session of a peer ends, and the peer goes on until it finds out */
#endif
#ifndef COMEBACKS
#define COMEBACKS 0 /* a peer that ended is started again, under a new ID */
#endif
#ifndef ABORTS
#define ABORTS 0   /* a joiner loses its patience */
#endif
#ifndef LATES
#define LATES 0    /* a command is late: its sender goes on, or ends, before the command is in the log */
#endif

/* ---- The value: cluster.Value ---- */

typedef Value {
  byte watches[MOST+1]; /* of a member: the next one in the ring, or itself if it is alone. 0: not a member */
  byte watcher[MOST+1]; /* of a member: the one before it */
  byte joiner[MOST+1];  /* of a member: the joiner that has it as its target */
  byte target[MOST+1];  /* of a joiner. 0: not a joiner */
  byte accepted;        /* the joiners that have written notify-watchers, as a set */
  byte members;         /* what follows from the above, as sets */
  byte joiners;
  byte candidates       /* the members that the next joiner may get as its target */
};

#define BEGIN 0           /* the value where the log begins, to the slowest peer; whoever starts begins here */
#define END   (MOST+1)    /* the value at the end of the log */
Value at[MOST+2];         /* those two; between them, the value that each peer has reached */

#define has(set, x)    (((set) >> (x)) & 1)
#define member(v, x)   has(at[v].members, x)
#define joining(v, x)  has(at[v].joiners, x)
#define everybody(v)   (at[v].members | at[v].joiners)

/* ---- The log: store.Log ---- */

#define PREPARE 1 /* cluster.PrepareJoin */
#define NOTIFY  2 /* cluster.NotifyWatchers */
#define ACCEPT  3 /* cluster.AcceptJoin */
#define ABORT   4 /* cluster.AbortJoin */
#define LEAVE   5 /* cluster.Leave */
#define COLLECT 6 /* cluster.PeerGC */

typedef Entry { byte op; byte about; byte target; byte by };
Entry log[4];  /* what the slowest peer has not applied yet */
byte n;        /* how many entries those are */
Entry late;    /* a command that is under way for long; op is 0 if there is none */

/* ---- The peers: peer.Member ---- */

byte applied[MOST+1];  /* how many entries of the log a peer has applied */
byte running = (1 << (PEERS+1)) - 2; /* the peers that live */
byte pulsing = (1 << (PEERS+1)) - 2; /* those whose pulse is in the store */
byte evicted;          /* those that saw themselves written out */
byte collecting;       /* those that look for everybody's pulse, as their call for that was in the log */
byte deaf;             /* with a planted fault only: those that have lost the watch on a joiner */

byte crashes = CRASHES, leaves = LEAVES, losses = LOSSES, comebacks = COMEBACKS, aborts = ABORTS, lates = LATES;

hidden byte i, j, k, x, w, first, there, count; /* for use within a step */

#define dead(v) (everybody(v) & ~pulsing) /* whom a look at all pulses finds: peer.Member.collect */

/* ---- What a command does to a value: cluster.Apply ---- */

/* cluster.Value.forget */
inline forget(v, who) {
  x = at[v].target[who];
  if
  :: x != 0 ->
    at[v].joiner[x] = 0;
    at[v].target[who] = 0;
    at[v].accepted = at[v].accepted & ~(1 << who)
  :: else
  fi
}

/* cluster.PrepareJoin.apply. Which candidate is the target follows from the position, so any may be. */
inline prepare(v, who, which) {
  if
  :: member(v, who) || joining(v, who)
  :: else ->
    if
    :: at[v].members == 0 -> at[v].watches[who] = who; at[v].watcher[who] = who
    :: else ->
      if
      :: has(at[v].candidates, which) -> at[v].target[who] = which; at[v].joiner[which] = who
      :: else
      fi
    fi
  fi
}

/* cluster.NotifyWatchers.apply */
inline notify(v, who) {
  if
  :: joining(v, who) -> at[v].accepted = at[v].accepted | (1 << who)
  :: else
  fi
}

/* cluster.AcceptJoin.apply: the joiner comes between its target and the target's watcher. */
inline accept(v, who) {
  if
  :: has(at[v].accepted, who) ->
    k = at[v].target[who];
    w = at[v].watcher[k]; /* the target itself, if it is alone */
    forget(v, who);
#ifndef ACCEPT_FORGETS_JOIN
#ifndef ACCEPT_KEEPS_WATCHER
    at[v].watcher[k] = who;
#endif
    at[v].watches[who] = k;
    at[v].watcher[who] = w;
    at[v].watches[w] = who
#endif
  :: else
  fi
}

/* cluster.Leave.apply: of a joiner, or of a member. Its watcher watches the next one, and the joins that need it end. */
inline leave(v, who) {
  if
  :: joining(v, who) ->
#ifndef DEAD_JOINER_STAYS
    forget(v, who)
#else
    skip
#endif
  :: member(v, who) ->
#ifndef LEAVE_KEEPS_JOIN
    w = at[v].joiner[who];
    forget(v, w);
#endif
    k = at[v].watches[who];
    w = at[v].joiner[k]; /* that joiner's target gets another watcher */
    forget(v, w);
    w = at[v].watcher[who];
    at[v].watches[who] = 0; at[v].watcher[who] = 0; at[v].joiner[who] = 0;
    if
    :: w != who -> at[v].watcher[k] = w; at[v].watches[w] = k
    :: else
    fi
  :: else
  fi
}

/* cluster.AbortJoin.apply */
inline abort(v, who) {
#ifdef LATE_ABORT_REMOVES
  leave(v, who)
#else
  forget(v, who)
#endif
}

/* cluster.Apply, and what follows of a value: cluster.Value.free says who is a candidate. */
inline apply(v, op_, who, which) {
  if
  :: op_ == PREPARE -> prepare(v, who, which)
  :: op_ == NOTIFY -> notify(v, who)
  :: op_ == ACCEPT -> accept(v, who)
  :: op_ == ABORT -> abort(v, who)
  :: op_ == LEAVE -> leave(v, who)
  :: else /* cluster.PeerGC.apply: it changes nothing */
  fi;
  at[v].members = 0; at[v].joiners = 0; at[v].candidates = 0;
  for (j : 1 .. MOST) {
    if
    :: at[v].watches[j] != 0 ->
      at[v].members = at[v].members | (1 << j);
      k = at[v].watches[j];
      if
#ifdef SECOND_JOINER
      :: true -> at[v].candidates = at[v].candidates | (1 << j)
#else
      :: at[v].joiner[j] == 0 && (k == j || at[v].joiner[k] == 0) -> at[v].candidates = at[v].candidates | (1 << j)
      :: else
#endif
      fi
    :: else
    fi;
    if
    :: at[v].target[j] != 0 -> at[v].joiners = at[v].joiners | (1 << j)
    :: else
    fi
  }
}

/* PROMISE: the members are always one ring, and no two joins have the same target. Two targets may be neighbours: the one that
watches the other was a target first. */
inline check(v) {
  count = 0;
  for (j : 1 .. MOST) {
    k = at[v].watches[j];
    w = at[v].joiner[j];
    x = at[v].target[j];
    if
    :: k != 0 ->
      assert(at[v].watcher[k] == j && x == 0);
      assert(w == 0 || at[v].target[w] == j);
      count++;
      there = j
    :: else ->
      assert(at[v].watcher[j] == 0 && w == 0);
      assert(x == 0 || at[v].watches[x] != 0 && at[v].joiner[x] == j)
    fi
  }
  /* Whoever follows the ring from a member meets all members, and is back after so many steps. */
  x = 0; k = there;
  for (j : 1 .. count) { x = x | (1 << k); k = at[v].watches[k] }
  assert(x == at[v].members && (count == 0 || k == there))
}

/* ---- The log ---- */

/* store.Log.Append. A command that changes nothing is not kept: to have sent it is to have done nothing. */
inline append(op_, who, which, sender) {
  log[n].op = op_; log[n].about = who; log[n].target = which; log[n].by = sender;
  n++;
  apply(END, op_, who, which);
  check(END)
}

#define changes(op_, who, which) ( \
  (op_ == PREPARE && !member(END, who) && !joining(END, who) && \
    ((at[END].members == 0 && which == 0) || has(at[END].candidates, which))) || \
  (op_ == NOTIFY && joining(END, who) && !has(at[END].accepted, who)) || \
  (op_ == ACCEPT && has(at[END].accepted, who)) || \
  (op_ == ABORT && (joining(END, who) || ABORT_REMOVES && member(END, who))) || \
  (op_ == LEAVE && (joining(END, who) && !JOINER_STAYS || member(END, who))) || \
  op_ == COLLECT)

#ifdef LATE_ABORT_REMOVES
#define ABORT_REMOVES true
#else
#define ABORT_REMOVES false
#endif
#ifdef DEAD_JOINER_STAYS
#define JOINER_STAYS true
#else
#define JOINER_STAYS false
#endif

/* A peer does not send what it has sent and not seen yet: peer.Member.send. */
#define under_way(l, op_, who) (l >= applied[me] && l < n && log[l].by == me && log[l].op == op_ && log[l].about == who)
#define sent(op_, who) (under_way(0, op_, who) || under_way(1, op_, who) || under_way(2, op_, who) || under_way(3, op_, who))

/* An entry of the log is dropped, and those after it move up. */
inline drop(e) {
  for (j : 1 .. MOST) {
    if
    :: applied[j] > e -> applied[j]--
    :: else
    fi
  }
  n--;
  for (j : 0 .. 3) {
    if
    :: j >= e && j < n -> log[j].op = log[j+1].op; log[j].about = log[j+1].about; log[j].target = log[j+1].target; log[j].by = log[j+1].by
    :: j == n -> log[j].op = 0; log[j].about = 0; log[j].target = 0; log[j].by = 0
    :: else
    fi
  }
}

/* What can't matter any more is forgotten: entries that all living peers have applied, and who sent what it has seen. With
that, there are finitely many states. */
inline settle() {
  first = n;
  for (i : 1 .. MOST) {
    if
    :: has(running, i) ->
      if
      :: applied[i] < first -> first = applied[i]
      :: else
      fi;
      if /* peer.Member.collect ends: it is in, or there is nobody to be found */
      :: has(everybody(i), i) || dead(i) == 0 -> collecting = collecting & ~(1 << i)
      :: else
      fi
    :: else
    fi
  }
  do
  :: first > 0 -> apply(BEGIN, log[0].op, log[0].about, log[0].target); drop(0); first--
  :: else -> break
  od;
  i = 0;
  do
  :: i < n ->
    k = log[i].by;
    if
    :: k != 0 && (!has(running, k) || applied[k] > i) -> log[i].by = 0
    :: else
    fi;
    if /* a call for a collection is something to its sender only */
    :: log[i].op == COLLECT && log[i].by == 0 -> drop(i)
    :: else -> i++
    fi
  :: else -> break
  od;
  if
  :: late.op != 0 && !has(running, late.by) ->
    late.by = 0;
    if
    :: late.op == COLLECT -> late.op = 0; late.about = 0
    :: else
    fi
  :: else
  fi
}

/* ---- What peers do ---- */

inline copy(to, from) {
  for (j : 1 .. MOST) {
    at[to].watches[j] = at[from].watches[j]; at[to].watcher[j] = at[from].watcher[j];
    at[to].joiner[j] = at[from].joiner[j]; at[to].target[j] = at[from].target[j]
  }
  at[to].accepted = at[from].accepted; at[to].members = at[from].members;
  at[to].joiners = at[from].joiners; at[to].candidates = at[from].candidates
}

/* A peer is no more, and what it knew. */
inline gone(who) {
  running = running & ~(1 << who); pulsing = pulsing & ~(1 << who);
  evicted = evicted & ~(1 << who); collecting = collecting & ~(1 << who); deaf = deaf & ~(1 << who);
  applied[who] = 0;
  for (j : 1 .. MOST) { at[who].watches[j] = 0; at[who].watcher[j] = 0; at[who].joiner[j] = 0; at[who].target[j] = 0 }
  at[who].accepted = 0; at[who].members = 0; at[who].joiners = 0; at[who].candidates = 0
}

/* A peer starts under an ID that is nowhere to be found: member.incarnation. */
inline start() {
  x = everybody(BEGIN) | running;
  for (j : 0 .. 3) {
    if
    :: j < n -> x = x | (1 << log[j].about)
    :: else
    fi
  }
  if
  :: late.op != 0 -> x = x | (1 << late.about)
  :: else
  fi;
  i = 1;
  do
  :: has(x, i) -> i++
  :: else -> break
  od;
  assert(i <= MOST); /* else the bound MOST is too small */
  running = running | (1 << i); pulsing = pulsing | (1 << i);
  copy(i, BEGIN)
}

/* What a peer watches, by the value that it has reached: cluster.Watches. */
#ifdef UNWATCHED_JOINER
#define watches_joiner(who) false
#else
#define watches_joiner(who) (at[me].watches[me] != 0 && at[me].joiner[at[me].watches[me]] == who && !has(deaf, me))
#endif
#ifdef UNWATCHED_TARGET
#define watches_target(who) false
#else
#define watches_target(who) (at[me].target[me] == who)
#endif
#define watches(who) (who != me && at[me].watches[me] == who || watches_joiner(who) || watches_target(who))

/* The joiner that a member has to accept now: cluster.Duties. */
#ifdef ALONE_ACCEPTS_NOBODY
#define accepts(who) (at[me].watches[me] != me && member(me, me) && at[me].joiner[at[me].watches[me]] == who && has(at[me].accepted, who))
#else
#define accepts(who) (member(me, me) && at[me].joiner[at[me].watches[me]] == who && has(at[me].accepted, who))
#endif

#define outside (at[me].members != 0 && !has(everybody(me), me))

/* Commands that a peer owes the log at the value that it has reached. */
#define owes_prepare (!has(evicted, me) && !has(everybody(me), me))                            /* member.joining.owed */
#define owes_notify (!has(evicted, me) && joining(me, me) && !has(at[me].accepted, me))        /* cluster.Duties */
#define owes_accept(who) (!has(evicted, me) && accepts(who))                                   /* cluster.Duties */
#define owes_leave(who) (!has(pulsing, who) && \
  (watches(who) || outside && has(collecting, me) && has(dead(me), who)))                      /* peer.Member.removals */
#ifdef NO_COLLECTION
#define owes_collect false
#else
#define owes_collect (outside && at[me].candidates == 0 && !has(collecting, me) && dead(me) != 0) /* member.joining.owed */
#endif

/* An option for each ID. */
#define EACH2(OPTION) OPTION(1) OPTION(2)
#define EACH3(OPTION) EACH2(OPTION) OPTION(3)
#define EACH4(OPTION) EACH3(OPTION) OPTION(4)
#define EACH5(OPTION) EACH4(OPTION) OPTION(5)
#define EACH6(OPTION) EACH5(OPTION) OPTION(6)
#define NAMED(MOST) EACH ## MOST
#define OF(MOST) NAMED(MOST)
#define EACH OF(MOST)

/* A command that a peer may send, now or late: then its sender goes on without knowing. */
#define may_send(op_, who) (has(running, me) && n < LAG && !sent(op_, who))
#define MAY_SEND(owes, op_, who, which) \
  :: may_send(op_, who) && owes && changes(op_, who, which) -> does = op_; about = who; target = which
#define MAY_BE_LATE(owes, op_, who) \
  :: may_send(op_, who) && owes && late.op == 0 && lates > 0 -> lates--; does = SENDS_LATE; about = who; target = op_

#define PREPARES(which)  MAY_SEND(owes_prepare, PREPARE, me, which)
#define ACCEPTS(who)     MAY_SEND(owes_accept(who), ACCEPT, who, 0)
#define REMOVES(who)     MAY_SEND(owes_leave(who), LEAVE, who, 0)
#define ACCEPTS_LATE(who) MAY_BE_LATE(owes_accept(who), ACCEPT, who)
#define REMOVES_LATE(who) MAY_BE_LATE(owes_leave(who), LEAVE, who)

/* What else a peer does, beside commands. */
#define APPLIES    7
#define SENDS_LATE 8
#define LEAVES_NOW 9
#define CRASHES_NOW 10
#define LOSES_PULSE 11

active [MOST] proctype Peer() {
  byte me = _pid + 1, does, about, target;
  end: do
  :: atomic {
    /* First it chooses what to do. */
    if
    /* It applies the next entry: peer.Member.replay */
    :: has(running, me) && applied[me] < n -> does = APPLIES
    /* It sends what it owes: peer.Member.send */
    MAY_SEND(owes_prepare, PREPARE, me, 0)
    EACH(PREPARES)
    MAY_SEND(owes_notify, NOTIFY, me, 0)
    EACH(ACCEPTS)
    EACH(REMOVES)
    MAY_SEND(owes_collect, COLLECT, me, 0)
    /* It loses its patience: member.joining.tired. Its join may have come about meanwhile. */
    :: may_send(ABORT, me) && joining(me, me) && aborts > 0 -> aborts--; does = ABORT; about = me
#if LATES > 0
    MAY_BE_LATE(owes_prepare, PREPARE, me)
    MAY_BE_LATE(owes_notify, NOTIFY, me)
    EACH(ACCEPTS_LATE)
    EACH(REMOVES_LATE)
    MAY_BE_LATE(owes_collect, COLLECT, me)
    :: may_send(ABORT, me) && joining(me, me) && aborts > 0 && late.op == 0 && lates > 0 ->
      aborts--; lates--; does = SENDS_LATE; about = me; target = ABORT
#endif
    /* It leaves: peer.Member.leaveCluster. Its session ends then, too. */
    :: has(running, me) && leaves > 0 && n < LAG -> leaves--; does = LEAVES_NOW; about = me
    /* It crashes. Its session ends at once; else it was slow before. */
    :: has(running, me) && crashes > 0 -> crashes--; does = CRASHES_NOW
    /* Its session ends, and it goes on. */
    :: has(running, me) && has(pulsing, me) && losses > 0 -> losses--; does = LOSES_PULSE
    fi;
    /* Then it does it. */
    d_step {
      if
      :: does <= COLLECT || does == LEAVES_NOW ->
        if
        :: does == LEAVES_NOW -> does = LEAVE; target = 0; first = 1
        :: else -> first = 0
        fi;
        if
        :: changes(does, about, target) -> append(does, about, target, me)
        :: else
        fi;
        if
        :: first -> gone(me)
        :: else
        fi
      :: does == APPLIES ->
        first = member(me, me);
        count = at[me].joiner[at[me].watches[me]]; /* the joiner that it watches */
        there = at[me].watcher[me];
        i = applied[me];
        apply(me, log[i].op, log[i].about, log[i].target);
        applied[me]++;
        if
        :: log[i].op == COLLECT && log[i].about == me -> collecting = collecting | (1 << me)
        :: else
        fi;
        if
        :: first && !member(me, me) ->
          evicted = evicted | (1 << me);
          assert(!has(pulsing, me)) /* PROMISE: nobody with a pulse is taken out */
        :: else
        fi
#ifdef ONE_SLOT
        ; if
        :: !member(me, me) || at[me].joiner[at[me].watches[me]] == 0 || at[me].joiner[at[me].watches[me]] != count ->
          deaf = deaf & ~(1 << me)
        :: else ->
          if
          :: at[me].watcher[me] != there -> deaf = deaf | (1 << me)
          :: else
          fi
        fi
#endif
      :: does == SENDS_LATE -> late.op = target; late.about = about; late.by = me
      :: does == CRASHES_NOW -> gone(me)
      :: does == LOSES_PULSE -> pulsing = pulsing & ~(1 << me)
      fi;
      does = 0; about = 0; target = 0;
      settle()
    } }
  od
}

/* A peer finds out that its session has ended, and starts again: peer.Member.breaks. The model has a process of its own
for it, as it happens in the end whatever else the peer does. */
#define FINDS_OUT(me) :: has(running, me) && !has(pulsing, me) -> who = me

active proctype Sessions() {
  byte who;
  end: do
  :: atomic {
    if
    EACH(FINDS_OUT)
    fi;
    d_step { gone(who); start(); who = 0; settle() } }
  od
}

#define RUNS(who) + has(running, who)
#define ARRIVES(which) :: late.op == PREPARE && n < LAG && changes(PREPARE, late.about, which) -> target = which; arrives = true

active proctype Others() {
  byte target;
  bool arrives;
  end: do
  /* A peer that has ended is started again. */
  :: d_step { comebacks > 0 && (0 EACH(RUNS)) < PEERS -> comebacks--; start(); settle() }
  :: atomic {
    /* A late command comes into the log, a late prepare with any target; or it changes nothing any more. */
    if
    ARRIVES(0)
    EACH(ARRIVES)
    :: late.op > PREPARE && n < LAG && changes(late.op, late.about, 0) -> arrives = true
    :: late.op != 0 && n < LAG && !changes(late.op, late.about, 0) &&
      (late.op > PREPARE || has(everybody(END), late.about) || at[END].members != 0 && at[END].candidates == 0)
    fi;
    d_step {
      if
      :: arrives -> append(late.op, late.about, target, late.by)
      :: else
      fi;
      late.op = 0; late.about = 0; late.by = 0; target = 0; arrives = false;
      settle()
    } }
#ifdef CALM
  /* From now on nothing goes wrong any more. What is late never comes. */
  :: d_step { crashes + leaves + losses + comebacks + aborts + lates + late.op > 0 ->
    crashes = 0; leaves = 0; losses = 0; comebacks = 0; aborts = 0; lates = 0; late.op = 0; late.about = 0; late.by = 0;
    settle() }
#endif
  od
}

/* PROMISE: in the end all the living are in, all the dead are out, and nothing is left to do. */
#define settled (running == 0 || \
  n == 0 && running == pulsing && at[BEGIN].members == running && at[BEGIN].joiners == 0)

ltl everybody_joins { <>[] settled }
