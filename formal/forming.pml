/*
How three machines form the cluster that is their store, and come back to it. docs/proof.md says what this is and how to
run it, and the first lines of ring.pml what to know of Promela.

Each rule names the Go function that it stands for, in store/quorum/internal/plan. Nothing here is made from the Go code.

That faults stop means that processes and disks stay, every machine that can act does so in the end, all answer, and each
offer is answered before the founder gives up; earlier messages may still arrive. Left out: differing lists, disks set back,
quorums of one, copies of a restored directory, membership of a running cluster, etcd's agreement and durations. As in
Go, only the last two offers to each machine may still arrive.
*/

/* The bounds. They are set from outside, as in: spin -DCLUSTERS=2 -DEMPTIES=1 */
#ifndef CLUSTERS
#define CLUSTERS 2 /* how often the founder proposes a cluster, at most 5, and 3 with CALM */
#endif
#ifndef EMPTIES
#define EMPTIES 1  /* how often a disk is emptied */
#endif
#define MORE 2     /* with CALM: how often the founder proposes one once nothing goes wrong any more */

/* The machines are 0, 1 and 2; the first founds. A set of machines, or of clusters, is a byte with a bit for each. */
#define FOUNDER 0
#define ALL 7
#define has(set, x) (((set) >> (x)) & 1)
#define majority(set) ((set) == 3 || (set) == 5 || (set) == 6 || (set) == 7)

/* ---- What a disk says: plan.Disk ---- */

#define EMPTY    0
#define PROMISED 1 /* the machine agrees that a cluster is formed */
#define FORMED   2 /* all machines have agreed; there is no log yet */
#define STARTED  3 /* there is a log */

byte state[3];
byte cluster[3];  /* which one; clusters are 1, 2, ... */
#define data(s) ((s) >= FORMED)

/* ---- The servers: etcd, and what a cluster commits ---- */

byte runs;        /* the machines whose server runs */
byte committed;   /* the clusters that have committed something */
byte keeps;       /* the machines whose disk has what is committed */

#define member(c, i) ((has(runs, i) && cluster[i] == (c)) << (i))
#define members(c) (member(c, 0) | member(c, 1) | member(c, 2))
#define keeper(c, i) ((has(keeps, i) && state[i] == STARTED && cluster[i] == (c)) << (i))
#define keepers(c) (keeper(c, 0) | keeper(c, 1) | keeper(c, 2))

/* ---- What is on its way ---- */

/* An answer: plan.Machine. The founder asks the others one after the other, and keeps what they said until it decides. */
typedef Answer {
  byte heard;
  byte state;
  byte cluster;
  byte now;     /* the process that said it has not ended since: plan.Machine.Life */
  byte running  /* its cluster has a majority */
};
Answer said[3];

/* An offer of the founder: plan.Offer. It may arrive late, twice, or never. */
typedef Offer {
  byte cluster;
  byte state;   /* what the machine's disk said when it was asked */
  byte kept;
  bool now
};
Offer newest[3], older[3]; /* the last two to each machine */

byte told[3];     /* the clusters of which a machine is told, at some time, that all have promised them */

/* ---- The founder's attempt ---- */

byte proposed;    /* the last cluster that was proposed */
byte left = CLUSTERS;
byte attempt;     /* the cluster that it wants to form now */
byte accepted;    /* the machines that have accepted it, as it was told */

/* ---- What a machine has decided and not done yet: plan.Decision ---- */

#define WAIT    0
#define PROPOSE 1
#define FOLLOW  2
#define RUN     3
#define JOIN    4

typedef Choice {
  byte what;
  byte cluster;
  byte state;  /* of the disk when it decided. If that has changed, it decides again. */
  byte kept
};
Choice choice[3];

byte empties = EMPTIES;
bool calm;     /* nothing goes wrong any more */

hidden byte i, j, c, what, former, host; /* for use within a step */
hidden byte all, some, agrees, conflicts, same;
hidden Answer answer[3];

/* ---- The disk ---- */

/* A disk says something that does not keep what is committed. What no disk keeps any more is forgotten. */
inline write(m, s, which) {
  former = cluster[m];
  state[m] = s; cluster[m] = which; keeps = keeps & ~(1 << m);
  if
  :: former != 0 && keepers(former) == 0 -> committed = committed & ~(1 << former)
  :: else
  fi
}

/* plan.Accept: the machine must be as the founder saw it. */
#ifdef ANY_LIFE
#define same_life(o) true
#else
#define same_life(o) (o.now)
#endif
#ifdef ANY_DISK
#define same_disk(m, o) true
#else
#define same_disk(m, o) (o.state == state[m] && o.kept == cluster[m])
#endif
#ifdef PROMISES_ONCE
#define may_promise(m) (state[m] == EMPTY)
#else
#define may_promise(m) (state[m] <= PROMISED)
#endif
#define accepts(m, o) (o.cluster != 0 && may_promise(m) && same_life(o) && same_disk(m, o))

/* plan.Form: only a disk that still promises just that cluster. */
#ifdef FORGETFUL_FORMS
#define forms(m, which) (state[m] == EMPTY || state[m] == PROMISED && cluster[m] == (which))
#else
#define forms(m, which) (state[m] == PROMISED && cluster[m] == (which))
#endif

/* plan.Agreed */
#ifdef MAJORITY_FORMS
#define agreed majority(accepted)
#else
#define agreed (accepted == ALL)
#endif

/* ---- The servers ---- */

/* All who run a cluster get what is committed. */
inline catch_up(which) {
  if
  :: majority(members(which)) && (members(which) & keeps) -> keeps = keeps | members(which)
  :: else
  fi
}

/* ---- A machine asks, decides and acts ---- */

/* What a machine answers now. */
inline hear(a, m) {
  a.heard = true; a.state = state[m]; a.cluster = cluster[m]; a.now = true;
  a.running = has(runs, m) && majority(members(cluster[m]))
}

inline hear_from(set) {
  for (j : 0 .. 2) {
    answer[j].heard = false;
    if
    :: has(set, j) -> hear(answer[j], j)
    :: else
    fi
  }
}

/* A machine goes on with what it has promised once another has data of that. */
#ifdef NOBODY_FOLLOWS
#define follows false
#else
#ifdef ANY_PROMISE
#define follows (state[me] == PROMISED && (agrees || conflicts))
#else
#define follows (state[me] == PROMISED && agrees)
#endif
#endif

/* The founder proposes a cluster once all have answered, and nobody has data: plan.view.allAgree. */
#ifdef PROPOSES_BESIDE_SILENCE
#define enough some
#else
#define enough all
#endif
#ifdef PROPOSES_BESIDE_DATA
#define proposes (me == FOUNDER && enough)
#else
#define proposes (me == FOUNDER && enough && !agrees && !conflicts)
#endif

/* plan.Decide, by the answers: what, and about which cluster. */
inline decide() {
  what = WAIT; c = 0;
  all = true; some = false; agrees = false; conflicts = false; host = 0;
  for (j : 0 .. 2) {
    if
    :: j == me
    :: j != me && !answer[j].heard -> all = false
    :: j != me && answer[j].heard ->
      some = true;
      if
      :: data(answer[j].state) && answer[j].cluster == cluster[me] -> agrees = true
      :: data(answer[j].state) && answer[j].cluster != cluster[me] -> conflicts = true
      :: else
      fi;
      if
      :: answer[j].running -> host = answer[j].cluster
      :: else
      fi
    fi
  }
#ifdef NOBODY_JOINS
  host = 0;
#endif
  if
  :: data(state[me]) -> /* plan.view.withData */
    if
    :: some && (agrees || !conflicts) -> what = RUN; c = cluster[me]
    :: else
    fi
  :: else -> /* plan.view.withoutData */
    if
    :: follows -> what = FOLLOW; c = cluster[me]
    :: !follows && host != 0 -> what = JOIN; c = host
    :: !follows && host == 0 && proposes -> what = PROPOSE; c = proposed + 1
    :: else
    fi
  fi
}

/* It does what it has decided: package quorum. */
inline act() {
  if
  :: what == PROPOSE && left > 0 ->
    left--; proposed++;
    if
    :: may_promise(me) ->
      write(me, PROMISED, c);
      attempt = c; accepted = 1 << me;
      for (j : 1 .. 2) {
        older[j].cluster = newest[j].cluster; older[j].state = newest[j].state;
        older[j].kept = newest[j].kept; older[j].now = newest[j].now;
        newest[j].cluster = c; newest[j].state = answer[j].state;
        newest[j].kept = answer[j].cluster; newest[j].now = answer[j].now
      }
    :: else
    fi
  :: what == FOLLOW && forms(me, c) -> write(me, FORMED, c)
  :: what == RUN -> state[me] = STARTED; cluster[me] = c; runs = runs | (1 << me)
  :: what == JOIN ->
    if /* the cluster's leader adds it, and it gets a copy */
    :: majority(members(c)) && (!has(committed, c) || (members(c) & keeps)) ->
      write(me, STARTED, c);
      runs = runs | (1 << me);
      catch_up(c)
    :: else
    fi
  :: else
  fi
}

inline forget_answers() {
  for (j : 0 .. 2) {
    said[j].heard = false; said[j].state = 0; said[j].cluster = 0; said[j].now = false; said[j].running = false
  }
}

inline forget_choice(m) { choice[m].what = 0; choice[m].cluster = 0; choice[m].state = 0; choice[m].kept = 0 }

/* The founder forms what all have accepted, and tells the others. */
inline form_here() {
  c = attempt;
  attempt = 0; accepted = 0;
  if
  :: forms(FOUNDER, c) -> write(FOUNDER, FORMED, c); told[1] = told[1] | (1 << c); told[2] = told[2] | (1 << c)
  :: else
  fi
}

/* A process ends, and another begins. One that is down is one that nobody hears from. */
inline restart(m) {
  runs = runs & ~(1 << m);
  forget_choice(m);
  if
  :: m == FOUNDER -> attempt = 0; accepted = 0; forget_answers()
  :: else
  fi;
  said[m].now = false; newest[m].now = false; older[m].now = false
}

/* PROMISE: there are never two clusters, and no majority runs without what its cluster has committed. */
inline check() {
  for (i : 0 .. 2) {
    for (j : 0 .. 2) {
      assert(!data(state[i]) || !data(state[j]) || cluster[i] == cluster[j])
    }
  }
  for (i : 1 .. proposed) {
    assert(!has(committed, i) || !majority(members(i) & ~keeps))
  }
}

/* What a machine does. */
#define ACTS       1
#define ASKS       2
#define HEARS      3
#define ENDS_ROUND 4
#define GIVES_UP   5
#define FORMS      6

#define idle (!has(runs, me) && choice[me].what == WAIT && !(me == FOUNDER && attempt != 0))
#define in_round (me == FOUNDER && state[me] <= PROMISED) /* it asks one after the other */
#define others (ALL & ~(1 << me))
#define replied(m) (has(accepted, m) || !accepts(m, newest[m]))

/* Any of the others answer; all of them, once nothing goes wrong any more. */
#define ASKS_SOME(set) \
  :: idle && !in_round && !has(set, me) && (!calm || (set) == others) -> does = ASKS; which = set

active [3] proctype Machine() {
  byte me = _pid, does, which;
  end: do
  :: atomic {
    /* First it chooses what to do. */
    if
    :: choice[me].what != WAIT -> does = ACTS
    ASKS_SOME(0) ASKS_SOME(1) ASKS_SOME(2) ASKS_SOME(3) ASKS_SOME(4) ASKS_SOME(5) ASKS_SOME(6)
    :: idle && in_round && !said[1].heard -> does = HEARS; which = 1
    :: idle && in_round && !said[2].heard -> does = HEARS; which = 2
    :: idle && in_round && (!calm || said[1].heard && said[2].heard) -> does = ENDS_ROUND
    :: me == FOUNDER && attempt != 0 && (!calm || replied(1) && replied(2) && !agreed) -> does = GIVES_UP
    :: me == FOUNDER && attempt != 0 && agreed -> does = FORMS
    fi;
    /* Then it does it. */
    d_step {
      if
      :: does == ACTS ->
        what = choice[me].what; c = choice[me].cluster;
        same = choice[me].state == state[me] && choice[me].kept == cluster[me];
        forget_choice(me);
        if
        :: same -> act()
        :: else
        fi
      :: does == ASKS ->
        hear_from(which);
        decide();
        if
        :: what != WAIT -> choice[me].what = what; choice[me].cluster = c; choice[me].state = state[me]; choice[me].kept = cluster[me]
        :: else
        fi
      :: does == HEARS -> hear(said[which], which)
      :: does == ENDS_ROUND ->
        for (j : 0 .. 2) {
          answer[j].heard = said[j].heard; answer[j].state = said[j].state; answer[j].cluster = said[j].cluster;
          answer[j].now = said[j].now; answer[j].running = said[j].running
        }
        decide();
        act();
        forget_answers()
      :: does == GIVES_UP -> attempt = 0; accepted = 0
      :: does == FORMS -> form_here()
      fi;
      check();
      does = 0; which = 0
    } }
  od
}

#define CLUSTER_IS_TOLD(x) :: has(told[me], x) && forms(me, x) -> which = x; becomes = FORMED

/* Messages to a machine arrive. The founder is told whether an offer is accepted, unless that answer is lost. */
active [3] proctype Messages() {
  byte me = _pid - 3, becomes, which;
  bool answers;
  end: do
  :: atomic {
    if
    :: accepts(me, newest[me]) -> which = newest[me].cluster; becomes = PROMISED
    :: accepts(me, older[me]) -> which = older[me].cluster; becomes = PROMISED
    CLUSTER_IS_TOLD(1) CLUSTER_IS_TOLD(2) CLUSTER_IS_TOLD(3) CLUSTER_IS_TOLD(4) CLUSTER_IS_TOLD(5)
    fi;
    if
    :: answers = true
    :: !calm -> answers = false
    fi;
    d_step {
      write(me, becomes, which);
      if
      :: becomes == PROMISED && answers && attempt == which -> accepted = accepted | (1 << me)
      :: else
      fi;
      check();
      becomes = 0; which = 0; answers = false
    } }
  od
}

#define COMMITS_ON(x, set) \
  :: (x) <= proposed && !has(committed, x) && ((set) & ~members(x)) == 0 -> which = x; on = set
#define COMMITS(x) COMMITS_ON(x, 3) COMMITS_ON(x, 5) COMMITS_ON(x, 6) COMMITS_ON(x, 7) \
  :: (x) <= proposed && has(committed, x) && majority(members(x)) && (members(x) & keeps) -> which = x

/* A cluster with a majority commits something on one, or all who run it catch up. */
active proctype Servers() {
  byte which, on;
  end: do
  :: atomic {
    if
    COMMITS(1) COMMITS(2) COMMITS(3) COMMITS(4) COMMITS(5)
    fi;
    d_step {
      if
      :: on != 0 -> committed = committed | (1 << which); keeps = keeps | on
      :: else -> catch_up(which)
      fi;
      check();
      which = 0; on = 0
    } }
  od
}

inline lose(m) {
  newest[m].cluster = 0; newest[m].state = 0; newest[m].kept = 0; newest[m].now = false;
  older[m].cluster = 0; older[m].state = 0; older[m].kept = 0; older[m].now = false;
  told[m] = 0
}

/* What goes wrong, beside lost answers. Processes end as often as they like. */
active proctype Faults() {
  byte m;
  bool emptied;
  end: do
  :: atomic {
    !calm ->
    if
    :: m = 0
    :: m = 1
    :: m = 2
    fi;
    if
    :: emptied = false
    :: empties > 0 && state[m] != EMPTY -> emptied = true
    fi;
    d_step {
      restart(m);
      if
      :: emptied -> empties--; write(m, EMPTY, 0)
      :: else
      fi;
      check();
      m = 0; emptied = false
    } }
#ifdef CALM
  /* From now on nothing goes wrong any more. What was sent arrives still, or all of it is lost. */
  :: d_step { !calm -> calm = true; left = MORE }
  :: d_step { !calm -> calm = true; left = MORE; lose(1); lose(2) }
#endif
  od
}

#define together (runs == ALL && cluster[0] == cluster[1] && cluster[1] == cluster[2])
#define of(x, m) ((cluster[m] == (x)) << (m))
#define some_data (data(state[0]) || data(state[1]) || data(state[2]))
#define held(m) (data(state[m]) && majority(of(cluster[m], 0) | of(cluster[m], 1) | of(cluster[m], 2)))
/* An operator has to help where disks were emptied, and a majority neither has the data that there is nor promised it. */
#define lost (empties < EMPTIES && some_data && !held(0) && !held(1) && !held(2))

/* PROMISE: once nothing goes wrong any more, in the end all machines run one cluster. */
ltl all_run { <> calm -> <> [] (together || lost) }
