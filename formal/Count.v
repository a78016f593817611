(* The key of a counter: no number is given twice, and in strict order a later call gets a greater number.

   Fence.v says how to read this. Here too, there is no clock, lease or session, and owners are as many as you like. Dates
   and times only choose how far above all reserved numbers a block begins (counter.Rule). The store keeps what it has
   committed: there is no loss in this model, nor a copy of a process. An owner may do without any step: it need not take
   what it finds, nor give what it has (as after counter.Queue.Stop). *)

From Coq Require Import Arith Lia Bool.

(* ===== The model ===== *)

Definition name := nat.    (* of an owner: one for each counter.Owner *)
Definition version := nat. (* of the key of counter.Key; 0: never written *)
Definition number := nat.
Definition call := nat.    (* for one number; one for several is as many, which begin and end together *)

(* A transaction that an owner has sent: counter.Write. The store applies it only if the key still has the version. It
   reserves the numbers above `from`, up to `to`; if there are none, then it gives back what is above. *)
Record write := Write { writer : name; stamp : nat; expects : version; from : number; to : number }.

Definition block (x : write) (n : number) := from x < n <= to x.

(* What an owner has: counter.State, and its counter.Dispenser. *)
Record owner := Owner {
  known  : version;           (* counter.State.Known: the last version that it read, or knows to be its own *)
  ended  : bool;              (* it gives nothing any more *)
  awaits : option write;      (* the answer to it *)
  group  : call -> Prop;      (* counter.Queue.sent: who waited when that was sent *)
  free   : number -> Prop }.  (* what is its own, and nobody got *)

Record world := World {
  (* The store. *)
  now_at   : version;                 (* the version that the key has now *)
  written  : version -> option write; (* what was written under each version *)
  block_of : number -> version;       (* the version of the block that a number is in; 0: none. No step depends on it. *)
  (* The network. *)
  sent     : write -> Prop;           (* what was ever sent; each may reach the store at any time, or never *)
  (* The owners and their callers. *)
  owners   : name -> owner;
  asks     : call -> option name;     (* whom a call asks, once it has begun *)
  before   : call -> number -> Prop;  (* what any owners' calls had got before it began *)
  got      : call -> option number }.

(* The greatest reserved number: counter.Record.Last. *)
Definition last_at (w : world) (v : version) : number := match written w v with Some x => to x | None => 0 end.

(* The store has applied it; or another one, so that it never will. *)
Definition applied (w : world) (x : write) := written w (S (expects x)) = Some x.
Definition refused (w : world) (x : write) := exists y, written w (S (expects x)) = Some y /\ y <> x.

Definition set {A} (f : nat -> A) (k : nat) (x : A) : nat -> A := fun i => if Nat.eqb i k then x else f i.

Definition start : world :=
  World 0 (fun _ => None) (fun _ => 0) (fun _ => False) (fun _ => Owner 0 false None (fun _ => False) (fun _ => False))
    (fun _ => None) (fun _ _ => False) (fun _ => None).

(* What the steps do. *)
Definition begin (w : world) (c : call) (o : name) : world :=
  World (now_at w) (written w) (block_of w) (sent w) (owners w) (set (asks w) c (Some o))
    (set (before w) c (fun n => exists c', got w c' = Some n)) (got w).
Definition send (w : world) (x : write) : world :=
  World (now_at w) (written w) (block_of w) (fun y => sent w y \/ y = x) (owners w) (asks w) (before w) (got w).
Definition turn (w : world) (o : name) (a : owner) : world :=
  World (now_at w) (written w) (block_of w) (sent w) (set (owners w) o a) (asks w) (before w) (got w).
Definition apply (w : world) (x : write) : world :=
  let v := S (now_at w) in
  World v (set (written w) v (Some x))
    (fun n => if to x <? n then 0 else if from x <? n then v else block_of w n)
    (sent w) (owners w) (asks w) (before w) (got w).
Definition learn (w : world) (o : name) (v : version) (x : write) : world :=
  let a := owners w o in turn w o (Owner v (ended a) None (group a) (fun n => free a n \/ block x n)).
Definition give (w : world) (c : call) (o : name) (n : number) : world :=
  let a := owners w o in
  World (now_at w) (written w) (block_of w) (sent w)
    (set (owners w) o (Owner (known a) (ended a) (awaits a) (group a) (fun m => free a m /\ m <> n)))
    (asks w) (before w) (set (got w) c (Some n)).

(* strict: which owners give numbers in strict order. *)
Inductive step (strict : name -> bool) (w : world) : world -> Prop :=

(* counter.Queue.Take or counter.Blocks.Take: a call begins, by which time others have got numbers, or even answers. *)
| Begins c o :
    asks w c = None ->
    step strict w (begin w c o)

(* counter.Step with Need, in counter.Owner.Claim: the owner sends a claim under the version that it knows, and awaits the
   answer to that alone, also after a doubt. In strict order it drops what is left of former blocks (counter.Queue.Add),
   and the new one is for those who wait now (counter.Queue.Demand). *)
| Sends o s f t :
    let a := owners w o in
    let x := Write o s (known a) f t in
    ended a = false -> last_at w (known a) <= f -> f < t ->
    (forall y, sent w y -> stamp y <> s) ->
    step strict w (turn (send w x) o (Owner (known a) false (Some x) (fun c => asks w c = Some o)
      (fun n => free a n /\ strict o = false)))

(* store.Store.Commit: the store applies a transaction that was sent at any time before, if the key has the version that
   the transaction expects. *)
| Applies x :
    sent w x -> expects x = now_at w ->
    step strict w (apply w x)

(* counter.Step with Applied: the owner gets the answer that it awaits. *)
| Learns o x :
    awaits (owners w o) = Some x -> applied w x ->
    step strict w (learn w o (S (expects x)) x)

(* counter.Step with Seen: the owner reads the key, and finds that a write of its own was applied that it did not know of. *)
| Finds o x :
    written w (now_at w) = Some x -> writer x = o -> known (owners w o) <> now_at w ->
    step strict w (learn w o (now_at w) x)

(* counter.Step with Seen: it reads the key, and takes nothing. *)
| Sees o :
    let a := owners w o in
    step strict w (turn w o (Owner (now_at w) (ended a) None (group a) (free a)))

(* counter.Queue.Add or counter.Blocks.Take: a call gets a number of its owner's; in strict order only if it waited when the
   last claim was sent. *)
| Gives c o n :
    ended (owners w o) = false -> free (owners w o) n ->
    asks w c = Some o -> got w c = None ->
    (strict o = true -> group (owners w o) c) ->
    step strict w (give w c o n)

(* counter.Step with Leave and then Stopped: the owner gives nothing any more (counter.Dispenser.Stop). *)
| Stops o :
    let a := owners w o in
    step strict w (turn w o (Owner (known a) true (awaits a) (group a) (free a)))

(* counter.Step with Due, while Returning: the owner gives back what is its own at the end, and nobody got. What it gave back
   before, it knows to be refused, or that was under the same version, so that the store applies one of the two. *)
| Returns o s t :
    let a := owners w o in
    ended a = true -> t <= last_at w (known a) ->
    (forall n, t < n <= last_at w (known a) -> free a n) ->
    (forall x, sent w x -> writer x = o -> from x = to x -> expects x = known a \/ refused w x) ->
    step strict w (send w (Write o s (known a) t t)).

(* The worlds that any number of steps, in any order, leads to. *)
Inductive reached (strict : name -> bool) : world -> Prop :=
| Start : reached strict start
| Next w w' : reached strict w -> step strict w w' -> reached strict w'.

(* ===== The proof ===== *)

(* The number is in a block of the owner's, which has learned that, or will never. *)
Definition holds (w : world) (o : name) (n : number) : Prop :=
  exists x, written w (block_of w n) = Some x /\ writer x = o /\ block_of w n <= known (owners w o).
Definition returned (w : world) (o : name) (n : number) : Prop :=
  exists x, applied w x /\ writer x = o /\ from x = to x /\ to x < n.
Definition nobody_got (w : world) (n : number) : Prop := forall c, got w c <> Some n.

(* What is true in each world. *)
Record sound (strict : name -> bool) (w : world) : Prop := {
  known_sound : forall o, known (owners w o) <= now_at w;
  written_sound : forall v x, written w v = Some x -> sent w x /\ v = S (expects x) /\ v <= now_at w;
  sent_sound : forall x, sent w x -> from x <= to x /\ expects x <= known (owners w (writer x)) /\
    (from x < to x -> last_at w (expects x) <= from x);
  (* A number that is in a block stays below what the key holds, and is in no other block. *)
  block_sound : forall n, block_of w n <> 0 -> block_of w n <= now_at w /\
    forall u, block_of w n <= u <= now_at w -> n <= last_at w u;
  unlearned : forall v x n, written w v = Some x -> block x n -> known (owners w (writer x)) < v -> block_of w n = v;
  free_sound : forall o n, free (owners w o) n -> returned w o n \/ holds w o n /\ nobody_got w n;
  got_sound : forall c n, got w c = Some n -> exists o, asks w c = Some o /\ holds w o n;
  got_once : forall c c' n, got w c = Some n -> got w c' = Some n -> c = c';
  (* What is given back, nobody got or will get. *)
  returns_sound : forall x, sent w x -> from x = to x -> ended (owners w (writer x)) = true /\
    (expects x = now_at w -> forall n, to x < n <= last_at w (now_at w) -> holds w (writer x) n /\ nobody_got w n);
  (* What others had got before a call began lies below the block that it waits for, and below what it gets. *)
  before_sound : forall c n, before w c n -> asks w c <> None /\ exists c', got w c' = Some n;
  group_sound : forall o c, group (owners w o) c -> asks w c = Some o;
  awaits_sound : forall o x, awaits (owners w o) = Some x ->
    sent w x /\ writer x = o /\ expects x = known (owners w o) /\
    forall c n, group (owners w o) c -> before w c n -> applied w x -> n <= last_at w (expects x);
  strict_sound : forall o c n m, strict o = true -> group (owners w o) c -> before w c n -> free (owners w o) m -> n < m;
  order : forall c o n m, asks w c = Some o -> strict o = true -> before w c n -> got w c = Some m -> n < m }.

Ltac cases := unfold set in *; repeat match goal with
  | |- context [Nat.eqb ?a ?b] => destruct (Nat.eqb_spec a b); subst
  | H : context [Nat.eqb ?a ?b] |- _ => destruct (Nat.eqb_spec a b); subst end.

Lemma start_sound strict : sound strict start.
Proof. split; simpl; unfold holds; simpl; try discriminate; try tauto; intros; lia. Qed.

Lemma one_holds w o o' n : holds w o n -> holds w o' n -> o = o'.
Proof. intros (x & E & W & _) (x' & E' & W' & _). congruence. Qed.

(* An owner knows more, and has as free what it had, or what lies in a block of its own that nobody has learned. *)
Lemma turn_sound strict w o a : sound strict w -> let b := owners w o in
  known b <= known a -> known a <= now_at w -> (ended b = true -> ended a = true) ->
  (forall n, free a n -> free b n \/ exists v x, written w v = Some x /\ writer x = o /\ block x n /\ known b < v <= known a) ->
  (forall c, group a c -> asks w c = Some o) ->
  (forall x, awaits a = Some x -> sent w x /\ writer x = o /\ expects x = known a /\
    forall c n, group a c -> before w c n -> applied w x -> n <= last_at w (expects x)) ->
  (forall c n m, strict o = true -> group a c -> before w c n -> free a m -> n < m) ->
  sound strict (turn w o a).
Proof.
  intros [k1 w1 s1 b1 p1 f1 g1 u1 r1 e1 q1 a1 d1 o1] b K N En Fr Gr Aw St. subst b.
  assert (H : forall p n, holds w p n -> holds (turn w o a) p n).
  { intros p n (x & E & W & L). exists x. simpl. cases; repeat split; auto; lia. }
  split; simpl; auto.
  - intros p. cases; auto.
  - intros x S. destruct (s1 _ S) as (A & B & C). cases; auto. repeat split; auto. lia.
  - intros v x n E B L. apply (p1 _ _ _ E B). cases; auto. lia.
  - intros p n. cases; [|intros F; destruct (f1 _ _ F) as [|[? ?]]; auto]. intros F.
    destruct (Fr _ F) as [F'|(v & x & E & <- & B & L)]; [destruct (f1 _ _ F') as [|[? ?]]; auto|]. right.
    pose proof (p1 _ _ _ E B ltac:(lia)) as V. split.
    + exists x. simpl. rewrite V. cases; try congruence. repeat split; auto; lia.
    + intros c G. destruct (g1 _ _ G) as (q & _ & y & E' & W & L'). rewrite V, E in E'. inversion E'; subst. lia.
  - intros c n G. destruct (g1 _ _ G) as (p & As & Hp). eauto.
  - intros x S Eq. destruct (r1 _ S Eq) as [En' R]. split; [cases; auto|].
    intros Nw n L. destruct (R Nw n L). auto.
  - intros p c. cases; auto.
  - intros p x. cases; [apply Aw|apply a1].
  - intros p c n m. cases; [apply St|apply d1].
Qed.

Lemma block_is_learned strict w o v x : sound strict w -> written w v = Some x -> writer x = o -> known (owners w o) < v ->
  (forall c n m, strict o = true -> group (owners w o) c -> before w c n -> block x m -> n < m) ->
  sound strict (learn w o v x).
Proof.
  intros I E W L B. destruct (written_sound _ _ I _ _ E) as (S & V & N). apply turn_sound; simpl; auto.
  - lia.
  - intros n [F|F]; auto. right. exists v, x. auto.
  - apply (group_sound _ _ I).
  - discriminate.
  - intros c n m T G Bf [F|F]; [eapply strict_sound|]; eauto.
Qed.

Lemma sent_is_sound strict w x : sound strict w -> expects x = known (owners w (writer x)) -> from x <= to x ->
  (from x < to x -> last_at w (expects x) <= from x) ->
  (from x = to x -> ended (owners w (writer x)) = true /\
    (expects x = now_at w -> forall n, to x < n <= last_at w (now_at w) -> holds w (writer x) n /\ nobody_got w n)) ->
  sound strict (send w x).
Proof.
  intros [k1 w1 s1 b1 p1 f1 g1 u1 r1 e1 q1 a1 d1 o1] K Le Lo Re. split; simpl; auto.
  - intros v y E. destruct (w1 _ _ E). auto.
  - intros y [Y| ->]; [apply s1; auto|]. repeat split; auto. lia.
  - intros y [Y| ->]; [apply r1|]; auto.
  - intros p y A. destruct (a1 _ _ A) as (A1 & A2 & A3 & A4). auto.
Qed.

(* What somebody got lies in a block that begins below all later ones. *)
Lemma got_lies_below strict w c n u : sound strict w -> got w c = Some n -> block_of w n <= u <= now_at w -> n <= last_at w u.
Proof.
  intros I G L. destruct (got_sound _ _ I _ _ G) as (o & _ & x & E & _). destruct (written_sound _ _ I _ _ E) as (_ & V & _).
  apply (block_sound _ _ I); auto. lia.
Qed.

Lemma step_sound strict w w' : sound strict w -> step strict w w' -> sound strict w'.
Proof.
  intros I S. pose proof I as [k1 w1 s1 b1 p1 f1 g1 u1 r1 e1 q1 a1 d1 o1].
  assert (LAST : forall c n, got w c = Some n -> n <= last_at w (now_at w)).
  { intros c n G. apply (got_lies_below _ _ _ _ _ I G). destruct (g1 _ _ G) as (o & _ & x & E & _). apply w1 in E. lia. }
  destruct S; try subst a.
  - (* Begins *)
    assert (NG : forall p, ~ group (owners w p) c) by (intros p G; apply q1 in G; congruence).
    split; simpl; auto.
    + intros c0 n G. destruct (g1 _ _ G) as (p & A & Hp). exists p. split; auto. cases; congruence.
    + intros c0 n. cases; [|apply e1]. intros. split; [discriminate|auto].
    + intros p c0 G. cases; auto. destruct (NG _ G).
    + intros p x A. destruct (a1 _ _ A) as (A1 & A2 & A3 & A4). repeat split; auto.
      intros c0 n G. cases; [destruct (NG _ G)|eauto].
    + intros p c0 n m T G. cases; [destruct (NG _ G)|eauto].
    + intros c0 p n m A T B G. destruct (g1 _ _ G) as (q & Q & _). cases; [congruence|apply (o1 _ _ _ _ A T B G)].
  - (* Sends *)
    assert (J : sound strict (send w x)) by (apply sent_is_sound; simpl; auto; lia).
    apply turn_sound; simpl; auto.
    + congruence.
    + intros n [F _]. auto.
    + intros y Y. inversion Y; subst y. repeat split; auto. intros c n _ _ A. exfalso. unfold applied in A. simpl in A.
      apply w1 in A. destruct A as [A _]. apply (H2 _ A). auto.
    + intros c n m T _ _ [_ F]. congruence.
  - (* Applies *)
    set (v := S (now_at w)). destruct (s1 _ H) as (Le & _ & Lo). rewrite H0 in *.
    assert (OLD : forall u, u <= now_at w -> set (written w) v (Some x) u = written w u).
    { intros u L. unfold v. cases; auto. lia. }
    assert (NEW : set (written w) v (Some x) v = Some x) by (unfold set; rewrite Nat.eqb_refl; auto).
    assert (LAT : forall u, u <= now_at w -> last_at (apply w x) u = last_at w u).
    { intros u L. unfold last_at. simpl. fold v. rewrite OLD; auto. }
    assert (HI : forall n, last_at w (now_at w) < n -> block_of w n = 0).
    { intros n L. destruct (Nat.eq_dec (block_of w n) 0) as [|N]; auto. destruct (b1 _ N) as (B1 & B2).
      specialize (B2 (now_at w)). lia. }
    (* A number above what the write leaves is nobody's, or is given back. *)
    assert (OUT : forall n o, to x < n -> holds w o n -> from x = to x /\ o = writer x /\ nobody_got w n).
    { intros n o L Ho. destruct (le_lt_dec n (last_at w (now_at w))) as [Ln|Ln].
      - destruct (Nat.eq_dec (from x) (to x)) as [Q|]; [|specialize (Lo ltac:(lia)); lia].
        destruct (r1 _ H Q) as (_ & R). destruct (R H0 n ltac:(lia)) as (R1 & R2). repeat split; auto.
        eapply one_holds; eauto.
      - destruct Ho as (y & E & _). rewrite (HI _ Ln) in E. apply w1 in E. lia. }
    assert (IN : forall n, block x n -> block_of w n = 0) by (intros n L; apply HI; unfold block in L; lia).
    assert (KEEP : forall o n, holds w o n -> n <= to x -> holds (apply w x) o n).
    { intros o n (y & E & W & L) Ln. destruct (w1 _ _ E) as (_ & V & N). exists y. simpl. fold v.
      destruct (Nat.ltb_spec (to x) n); [lia|]. destruct (Nat.ltb_spec (from x) n).
      - rewrite (IN n) in V by (unfold block; lia). lia.
      - rewrite OLD by lia. auto. }
    assert (GOT : forall c n, got w c = Some n -> n <= to x).
    { intros c n G. destruct (g1 _ _ G) as (o & _ & Ho). destruct (le_lt_dec n (to x)) as [|L]; auto.
      destruct (OUT _ _ L Ho) as (_ & _ & N). destruct (N _ G). }
    split; auto.
    + intros o. specialize (k1 o). simpl. lia.
    + intros u y. simpl. fold v. destruct (Nat.eq_dec u v) as [->|N].
      * rewrite NEW. intros E. inversion E; subst. unfold v. auto.
      * unfold set. destruct (Nat.eqb_spec u v); [lia|]. intros E. destruct (w1 _ _ E) as (E1 & E2 & E3). unfold v. auto.
    + intros y Y. destruct (s1 _ Y) as (Y1 & Y2 & Y3). specialize (k1 (writer y)). repeat split; auto.
      rewrite LAT by lia. auto.
    + intros n. simpl. fold v. intros B.
      assert (A : block_of w n <> 0 -> n <= to x -> forall u, block_of w n <= u <= v -> n <= last_at (apply w x) u).
      { intros N L u U. destruct (b1 _ N) as (B1 & B2). destruct (Nat.eq_dec u v) as [->|Nu].
        - unfold last_at. simpl. fold v. rewrite NEW. auto.
        - unfold v in *. rewrite LAT by lia. apply B2. lia. }
      destruct (Nat.ltb_spec (to x) n); [lia|]. destruct (Nat.ltb_spec (from x) n).
      * split; auto. intros u U. replace u with v by lia. unfold last_at. simpl. fold v. rewrite NEW. auto.
      * destruct (b1 _ B). split; auto. unfold v. lia.
    + intros u y n. simpl. fold v. intros E B L. destruct (Nat.eq_dec u v) as [->|N].
      * rewrite NEW in E. inversion E; subst y. unfold block in B.
        destruct (Nat.ltb_spec (to x) n); [lia|]. destruct (Nat.ltb_spec (from x) n); lia.
      * unfold set in E. destruct (Nat.eqb_spec u v); [lia|]. pose proof (p1 _ _ _ E B L) as P. destruct (w1 _ _ E) as (_ & V & _).
        destruct (Nat.ltb_spec (to x) n) as [T|T].
        -- exfalso. destruct (le_lt_dec n (last_at w (now_at w))) as [Ln|Ln]; [|apply HI in Ln; lia].
           destruct (Nat.eq_dec (from x) (to x)) as [Q|]; [|specialize (Lo ltac:(lia)); lia].
           destruct (r1 _ H Q) as (_ & R). destruct (R H0 n ltac:(lia)) as ((z & Z1 & Z2 & Z3) & _).
           rewrite P in *. congruence || (rewrite E in Z1; inversion Z1; subst; rewrite Z2 in *; lia).
        -- destruct (Nat.ltb_spec (from x) n); auto. rewrite (IN n) in P by (unfold block; lia). lia.
    + intros o n F. destruct (f1 _ _ F) as [(y & A & Y)|[Ho N]].
      * left. exists y. split; auto. unfold applied in *. simpl. fold v. apply w1 in A as A'. rewrite OLD by lia. auto.
      * destruct (le_lt_dec n (to x)) as [L|L]; [right; auto|]. destruct (OUT _ _ L Ho) as (Q & W & _). left.
        exists x. unfold applied. simpl. rewrite H0. auto.
    + intros c n G. destruct (g1 _ _ G) as (o & A & Ho). exists o. split; auto. apply KEEP; eauto.
    + intros y Y Q. destruct (r1 _ Y Q) as (R1 & _). split; auto. simpl. intros E. specialize (s1 _ Y).
      specialize (k1 (writer y)). lia.
    + intros o y A. destruct (a1 _ _ A) as (A1 & A2 & A3 & A4). repeat split; auto. intros c n G B.
      unfold applied. simpl. fold v. specialize (k1 o). rewrite LAT by lia. intros E.
      destruct (Nat.eq_dec (expects y) (now_at w)) as [Q|Q].
      * rewrite Q. destruct (e1 _ _ B) as (_ & c' & G'). eauto.
      * apply A4 with c; auto. unfold applied. rewrite OLD in E by lia. auto.
  - (* Learns *)
    destruct (a1 _ _ H) as (A1 & A2 & A3 & A4). apply block_is_learned; auto; [lia|].
    intros c n m T G B M. specialize (A4 _ _ G B H0). destruct (s1 _ A1) as (_ & _ & Lo). unfold block in M. lia.
  - (* Finds *)
    destruct (w1 _ _ H) as (S & V & _). destruct (s1 _ S) as (_ & _ & Lo). specialize (k1 o) as K.
    apply block_is_learned; auto; [lia|]. intros c n m T G B M. unfold block in M.
    destruct (e1 _ _ B) as (_ & c' & G'). destruct (g1 _ _ G') as (p & _ & y & E & W & L). destruct (w1 _ _ E) as (_ & _ & N).
    assert (block_of w n <> now_at w) by (intros Q; rewrite Q, H in E; inversion E; subst; lia).
    pose proof (got_lies_below _ _ _ _ (expects x) I G'). lia.
  - (* Sees *)
    apply turn_sound; simpl; auto; [discriminate|].
    intros c n m. apply d1.
  - (* Gives *)
    assert (HF : forall p x, sent w x -> from x = to x -> writer x = p -> p <> o).
    { intros p x X Q W E. destruct (r1 _ X Q). congruence. }
    assert (Hn : holds w o n /\ nobody_got w n).
    { destruct (f1 _ _ H0) as [(x & A & W & Q & _)|]; auto. destruct (w1 _ _ A) as (X & _). destruct (HF _ _ X Q W eq_refl). }
    destruct Hn as [Hn NG].
    assert (HH : forall p m, holds w p m -> holds (give w c o n) p m).
    { intros p m (x & X). exists x. simpl. cases; auto. }
    assert (NN : forall p m, holds w p m -> p <> o \/ m <> n -> nobody_got w m -> nobody_got (give w c o n) m).
    { intros p m Hm D N c'. simpl. cases; [|apply N]. intros E. inversion E; subst m.
      destruct D as [D|D]; [apply D; eapply one_holds|]; eauto. }
    split; simpl; auto.
    + intros p. cases; simpl; auto.
    + intros x X. pose proof (s1 _ X). cases; simpl; auto.
    + intros v x m E B L. apply (p1 _ _ _ E B). cases; simpl in *; auto.
    + intros p m F. assert (F' : free (owners w p) m /\ (p <> o \/ m <> n)) by (cases; simpl in *; tauto).
      destruct F' as [F' D]. destruct (f1 _ _ F') as [|[? ?]]; [left|right]; eauto.
    + intros c' m. cases.
      * intros E. inversion E; subst. eauto.
      * intros G. destruct (g1 _ _ G) as (p & ? & ?). eauto.
    + intros c1 c2 m. cases; auto; intros E1 E2; try (inversion E1; subst; destruct (NG _ E2)).
      * inversion E2; subst. destruct (NG _ E1).
      * eauto.
    + intros x X Q. destruct (r1 _ X Q) as (R1 & R2). pose proof (HF _ _ X Q eq_refl) as D. split; [cases; simpl; auto|].
      intros N m L. destruct (R2 N m L) as (R3 & R4). eauto.
    + intros c' m B. destruct (e1 _ _ B) as (A & c1 & G). split; auto. exists c1. cases; congruence.
    + intros p c'. cases; simpl; auto.
    + intros p x. cases; simpl; auto; apply a1.
    + intros p c' m m' T G B F. cases; simpl in *; eapply d1; eauto; tauto.
    + intros c' p m m' A T B. cases; [|apply (o1 _ _ _ _ A T B)]. intros E. inversion E; subst. assert (p = o) by congruence. subst. eapply d1; eauto.
  - (* Stops *)
    apply turn_sound; simpl; auto. intros c n m. apply d1.
  - (* Returns *)
    apply sent_is_sound; simpl; auto; [lia|]. intros _. split; auto. intros Q n L. rewrite <- Q in L.
    destruct (f1 _ _ (H1 _ L)) as [(x & A & W & E & _)|]; auto. exfalso. destruct (w1 _ _ A) as (X & _ & N).
    destruct (H2 _ X W E) as [K|(y & Y & D)]; [lia|]. unfold applied in A. congruence.
Qed.

Lemma reached_sound strict w : reached strict w -> sound strict w.
Proof. induction 1; [apply start_sound|eapply step_sound; eauto]. Qed.

(* ===== The theorems ===== *)

(* No two calls ever get the same number, of whichever owners. *)
Theorem no_number_is_given_twice strict w : reached strict w -> forall c c' n, got w c = Some n -> got w c' = Some n -> c = c'.
Proof. intros R. apply (got_once _ _ (reached_sound _ _ R)). Qed.

(* A call of an owner that gives numbers in strict order gets a greater number than all calls that had theirs before it
   began, of whichever owners. *)
Theorem later_calls_get_greater_numbers strict w : reached strict w -> forall c o n m,
  asks w c = Some o -> strict o = true -> before w c n -> got w c = Some m -> n < m.
Proof. intros R. apply (order _ _ (reached_sound _ _ R)). Qed.

Ltac next R := eapply Next in R; [match type of R with reached _ ?w => let v := fresh in set (v := w) in R end|].

(* The model is not empty. Owner 1 gives 1, and gives back 2 and 3. The second, in strict order, claims 2, and that is
   applied, but it gets no answer. Then call 3 begins, and the next claim is refused: call 3 gets the 2 that the owner finds. *)
Theorem numbers_are_given : exists w, reached (Nat.eqb 2) w /\ got w 1 = Some 1 /\ before w 3 1 /\ got w 3 = Some 2.
Proof.
  pose proof (Start (Nat.eqb 2)) as R.
  next R; [|apply (Begins _ _ 1 1); auto].
  next R; [|apply (Sends _ _ 1 1 0 3); cbn; auto; tauto].
  next R; [|apply (Applies _ _ (Write 1 1 0 0 3)); cbn; auto].
  next R; [|apply (Learns _ _ 1 (Write 1 1 0 0 3)); unfold applied; cbn; auto].
  next R; [|apply (Gives _ _ 1 1 1); cbn; unfold block; cbn; auto; discriminate].
  next R; [|apply (Stops _ _ 1)].
  next R; [|apply (Returns _ _ 1 2 1); cbn; unfold block; cbn; auto; [intros n L; lia|]].
  2: { intros x [[]| ->]; discriminate. }
  next R; [|apply (Applies _ _ (Write 1 2 1 1 1)); cbn; auto].
  next R; [|apply (Begins _ _ 2 2); auto].
  next R; [|apply (Sees _ _ 2)].
  next R; [|apply (Sends _ _ 2 3 1 2); cbn; auto].
  2: { intros y S. intuition (subst; discriminate). }
  next R; [|apply (Applies _ _ (Write 2 3 2 1 2)); cbn; auto].
  next R; [|apply (Begins _ _ 3 2); auto].
  next R; [|apply (Sends _ _ 2 4 1 3); cbn; auto].
  2: { intros y S. intuition (subst; discriminate). }
  next R; [|apply (Finds _ _ 2 (Write 2 3 2 1 2)); cbn; auto].
  next R; [|apply (Gives _ _ 3 2 2); cbn; unfold block; cbn; auto].
  eexists. split; [exact R|]. cbn. repeat split. exists 1. auto.
Qed.
