(* The fence of one node ID: no instant of it is ever used by two owners.

   How to read this without knowing Coq: only the first part, "The model", matters. It says what there is (the
   records) and what can happen (the steps). `f : A -> B` is a function from A to B; `A -> Prop` is a set of A's;
   a line of a step above its `step w ...` is a condition, and `step w (...)` says what the world is afterwards.
   The last part states the theorem. What lies between is the proof, which Coq checks.

   There is no clock, lease, session or watch in this model: none is needed. Owners are as many as you like. A
   crash is an owner that takes no more steps; a pause, one that takes none for as long as you like. *)

From Coq Require Import Arith Lia Bool.

(* ===== The model ===== *)

Definition name := nat.    (* an owner's operation ID: one for each fence.Fence *)
Definition version := nat. (* of the key last_reported_time/<node>; 0: never written *)
Definition instant := nat. (* of ID time *)

(* What an owner believes: fence.State. *)
Record owner := Owner {
  began : bool;          (* it has read the key *)
  ended : bool;          (* its generator has stopped for good *)
  base  : version;       (* the version that it read when it began *)
  floor : instant;       (* fence.State.Floor: it uses nothing before that *)
  known : version;       (* fence.State.Reported: the last version that it read, or knows to be its own *)
  bound : instant;       (* fence.State.Horizon: it uses nothing from there on *)
  last  : instant }.     (* fence.State.End, once its generator has stopped *)

(* A transaction that an owner has sent: fence.Write. The store applies it only if the key still has the version. *)
Record write := Write { writer : name; expects : version; horizon : instant }.

Record world := World {
  (* The store. *)
  now_at  : version;                     (* the version that the key has now *)
  written : version -> option (name * instant); (* what was written under each version: by whom, which horizon *)
  (* The network. *)
  sent    : write -> Prop;               (* what was ever sent; each may reach the store at any time, or never *)
  (* The owners. *)
  owners  : name -> owner;
  used    : name -> instant -> Prop }.   (* the instants in which each has made an ID *)

(* The horizon of a version. *)
Definition horizon_at (w : world) (v : version) : instant :=
  match written w v with Some (_, h) => h | None => 0 end.

Definition set {A} (f : nat -> A) (k : nat) (x : A) : nat -> A := fun i => if Nat.eqb i k then x else f i.

(* At first the key does not exist, nobody has begun, and nothing is sent or used. *)
Definition start : world :=
  World 0 (fun _ => None) (fun _ => False) (fun _ => Owner false false 0 0 0 0 0) (fun _ _ => False).

(* What the steps do. *)
Definition read (w : world) (o : name) (f : instant) : world :=
  World (now_at w) (written w) (sent w) (set (owners w) o (Owner true false (now_at w) f (now_at w) f 0)) (used w).
Definition send (w : world) (x : write) : world :=
  World (now_at w) (written w) (fun y => sent w y \/ y = x) (owners w) (used w).
Definition apply (w : world) (x : write) : world :=
  World (S (now_at w)) (set (written w) (S (now_at w)) (Some (writer x, horizon x))) (sent w) (owners w) (used w).
Definition learn (w : world) (o : name) (v : version) (h : instant) : world :=
  let a := owners w o in
  World (now_at w) (written w) (sent w)
    (set (owners w) o (Owner (began a) (ended a) (base a) (floor a) v (max (bound a) h) (last a))) (used w).
Definition use (w : world) (o : name) (t : instant) : world :=
  World (now_at w) (written w) (sent w) (owners w) (fun o' t' => used w o' t' \/ (o' = o /\ t' = t)).
Definition stop (w : world) (o : name) (e : instant) : world :=
  let a := owners w o in
  World (now_at w) (written w) (sent w)
    (set (owners w) o (Owner (began a) true (base a) (floor a) (known a) (bound a) e)) (used w).

Inductive step (w : world) : world -> Prop :=

(* fence.Begin, called by fence.Claim: an owner reads the key. Its floor is the horizon that it read, or later
   (fence.Config.NotBefore). *)
| Read o f :
    began (owners w o) = false ->
    horizon_at w (now_at w) <= f ->
    step w (read w o f)

(* fence.Step with Due, while Claiming or Held: the owner sends a claim or an extension, under the version that it
   knows. Step with Doubt changes nothing: the owner may send again, under the same version. *)
| Send o h :
    began (owners w o) = true -> ended (owners w o) = false ->
    bound (owners w o) <= h ->
    step w (send w (Write o (known (owners w o)) h))

(* store.Store.Commit: the store applies a transaction that was sent at any time before, if the key has the
   version that the transaction expects. The key gets a version that it never had. *)
| Apply x :
    sent w x -> expects x = now_at w ->
    step w (apply w x)

(* fence.Step with Applied, or with Seen after fence.Step with Conflict asked to Look: the owner learns that
   a write of its own was applied. *)
| Learn o v h :
    written w v = Some (o, h) -> known (owners w o) <= v ->
    step w (learn w o v h)

(* firn.Generator.Next: the owner makes an ID in an instant between its floor and its bound. *)
| Use o t :
    began (owners w o) = true -> ended (owners w o) = false ->
    floor (owners w o) <= t -> t < bound (owners w o) ->
    step w (use w o t)

(* fence.Step with Leave and then Stopped, in fence.Fence.Release: the generator stops for good
   (firn.Generator.Stop). All that was used lies before e. *)
| Stop o e :
    began (owners w o) = true -> ended (owners w o) = false ->
    floor (owners w o) <= e -> (forall t, used w o t -> t < e) ->
    step w (stop w o e)

(* fence.Step with Due, while Releasing: the owner sends that end as the horizon, which may lower it. *)
| Release o :
    began (owners w o) = true -> ended (owners w o) = true ->
    step w (send w (Write o (known (owners w o)) (last (owners w o)))).

(* The worlds that any number of steps, in any order, leads to. *)
Inductive reached : world -> Prop :=
| Start : reached start
| Next w w' : reached w -> step w w' -> reached w'.

(* ===== The proof ===== *)

Definition wrote w o v := exists h, written w v = Some (o, h).

(* What is true in each world. Each line says why the next step can't break the theorem. *)
Record sound (w : world) : Prop := {
  (* The versions up to now, and no others, were written. *)
  versions : forall v o h, written w v = Some (o, h) -> 1 <= v <= now_at w;
  no_gaps : forall v, 1 <= v <= now_at w -> exists o h, written w v = Some (o, h);
  (* An owner's floor is at or above the horizon that it read, and its bound at or above that of what it knows. *)
  owner_sound : forall o, let a := owners w o in began a = true ->
    base a <= known a <= now_at w /\ horizon_at w (base a) <= floor a /\
    (known a = base a \/ wrote w o (known a)) /\
    horizon_at w (known a) <= bound a /\ floor a <= bound a;
  (* What was sent, and what was written, follows upon the owner's own write or upon what it read; and it lowers
     the horizon only to the end of all use. *)
  sent_sound : forall x, sent w x -> let a := owners w (writer x) in
    began a = true /\ floor a <= horizon x /\ base a <= expects x <= now_at w /\
    (expects x = base a \/ wrote w (writer x) (expects x)) /\
    (horizon_at w (expects x) <= horizon x \/ (ended a = true /\ horizon x = last a));
  written_sound : forall v o h, written w v = Some (o, h) -> let a := owners w o in
    began a = true /\ base a < v /\ floor a <= h /\
    (v = S (base a) \/ wrote w o (pred v)) /\
    (horizon_at w (pred v) <= h \/ (ended a = true /\ h = last a));
  (* The store has confirmed each bound. *)
  confirmed : forall o, began (owners w o) = true ->
    bound (owners w o) = floor (owners w o) \/ exists v, written w v = Some (o, bound (owners w o));
  end_sound : forall o, let a := owners w o in ended a = true -> began a = true /\ floor a <= last a;
  (* What was used lies above the floor, below the end, and below a horizon that was written. *)
  used_sound : forall o t, used w o t -> let a := owners w o in
    began a = true /\ floor a <= t /\ (ended a = true -> t < last a) /\
    exists v h, written w v = Some (o, h) /\ t < h }.

Ltac cases := unfold set in *; repeat match goal with
  | |- context [Nat.eqb ?a ?b] => destruct (Nat.eqb_spec a b); subst
  | H : context [Nat.eqb ?a ?b] |- _ => destruct (Nat.eqb_spec a b); subst end.

Lemma start_sound : sound start.
Proof. split; simpl; try discriminate; try tauto; intros; lia. Qed.

Lemma not_yet_written w : sound w -> written w (S (now_at w)) = None.
Proof. intros I. destruct (written w (S (now_at w))) as [[o h]|] eqn:E; auto. apply (versions w I) in E. lia. Qed.

Lemma step_sound w w' : sound w -> step w w' -> sound w'.
Proof.
  intros I S. pose proof (not_yet_written w I) as NA.
  destruct I as [a1 a2 b1 c1 d1 f1 f2 g1].
  destruct S; unfold read, send, apply, learn, use, stop, wrote, horizon_at in *.
  - (* Read *)
    assert (NB : forall v h, written w v <> Some (o, h)) by (intros v h E; apply d1 in E; destruct E; congruence).
    split; simpl; unfold wrote, horizon_at in *; simpl; auto.
    + intros o0 H1. cases; simpl in *.
      * repeat split; auto; lia.
      * apply b1; auto.
    + intros x H1. pose proof (c1 _ H1) as C. cases; simpl in *; [destruct C; congruence|exact C].
    + intros v o0 h E. pose proof (d1 _ _ _ E) as D. cases; [exfalso; eapply NB; eauto|exact D].
    + intros o0 H1. cases; simpl in *; auto.
    + intros o0 H1. cases; simpl in *; auto; discriminate.
    + intros o0 t U. pose proof (g1 _ _ U) as G. cases; [destruct G; congruence|exact G].
  - (* Send *)
    split; simpl; unfold wrote, horizon_at in *; simpl; auto.
    intros x [P| ->]; [apply c1; auto|]. simpl.
    destruct (b1 _ H) as (K & Fl & M & Hk & Fb).
    repeat split; auto; try lia.
  - (* Apply *)
    assert (OLD : forall v, v <= now_at w -> set (written w) (S (now_at w)) (Some (writer x, horizon x)) v = written w v).
    { intros v L. cases; auto. lia. }
    destruct (c1 _ H) as (Bo & Fh & Rv & M & Mono). rewrite H0 in *.
    split; simpl; unfold wrote, horizon_at in *; simpl.
    + intros v o0 h0 E. cases; [lia|]. apply a1 in E. lia.
    + intros v L. cases; [eauto|]. apply a2. lia.
    + intros o0 B0. destruct (b1 _ B0) as (K & Fl & Mk & Hk & Fb).
      rewrite !OLD by lia. repeat split; auto; lia.
    + intros y P. destruct (c1 _ P) as (B0 & F0 & R0 & M0 & Mo0).
      rewrite !OLD by lia. repeat split; auto; lia.
    + intros v o0 h0 E. destruct (Nat.eq_dec v (S (now_at w))) as [->|N].
      * unfold set in E. rewrite Nat.eqb_refl in E. inversion E; subst. simpl.
        rewrite !OLD by lia. repeat split; auto; try lia.
        destruct M as [M|M]; [left; lia|right; exact M].
      * assert (E' : written w v = Some (o0, h0)) by (unfold set in E; destruct (Nat.eqb_spec v (S (now_at w))); [lia|auto]).
        pose proof (a1 _ _ _ E'). destruct (d1 _ _ _ E') as (B0 & R0 & F0 & M0 & Mo0).
        rewrite !OLD by lia. repeat split; auto.
    + intros o0 B0. destruct (f1 _ B0) as [F|[v F]]; [auto|]. right. exists v.
      pose proof (a1 _ _ _ F). rewrite OLD by lia. auto.
    + auto.
    + intros o0 t U. destruct (g1 _ _ U) as (B0 & F0 & St & v & h0 & E & L). repeat split; auto.
      exists v, h0. pose proof (a1 _ _ _ E). rewrite OLD by lia. auto.
  - (* Learn *)
    pose proof (a1 _ _ _ H) as L1. destruct (d1 _ _ _ H) as (Bo & Ro & Fo & Mo & Mono).
    split; simpl; unfold wrote, horizon_at in *; simpl; auto.
    + intros o0. cases; simpl; auto. intros B0. destruct (b1 _ B0) as (K & Fl & Mk & Hk & Fb).
      rewrite H. repeat split; auto; try lia. right; eauto.
    + intros x P. pose proof (c1 _ P) as C. cases; simpl; auto. 
    + intros v0 o0 h0 E. pose proof (d1 _ _ _ E) as D. cases; simpl; auto.
    + intros o0. cases; simpl; auto. intros B0. pose proof (f1 _ B0) as F.
      destruct (Nat.max_spec (bound (owners w o)) h) as [[Lt ->]|[Le ->]]; [right; eauto|auto].
    + intros o0. cases; simpl; auto.
    + intros o0 t U. pose proof (g1 _ _ U) as G. cases; simpl; auto.
  - (* Use *)
    split; simpl; unfold wrote, horizon_at in *; simpl; auto.
    intros o0 t0 [U|[-> ->]]; [apply g1; auto|]. repeat split; auto; [congruence|].
    destruct (f1 _ H) as [F|[v F]]; [lia|eauto].
  - (* Stop *)
    split; simpl; unfold wrote, horizon_at in *; simpl; auto.
    + intros o0. cases; simpl; auto.
    + intros x P. destruct (c1 _ P) as (B0 & F0 & R0 & M0 & Mo0). cases; simpl; repeat split; auto; try lia.
      destruct Mo0 as [?|[? ?]]; [auto|congruence].
    + intros v o0 h E. destruct (d1 _ _ _ E) as (B0 & R0 & F0 & M0 & Mo0). cases; simpl; repeat split; auto.
      destruct Mo0 as [?|[? ?]]; [auto|congruence].
    + intros o0. cases; simpl; auto.
    + intros o0. cases; simpl; auto.
    + intros o0 t U. destruct (g1 _ _ U) as (B0 & F0 & St & Ex). cases; simpl; repeat split; auto.
  - (* Release *)
    split; simpl; unfold wrote, horizon_at in *; simpl; auto.
    intros x [P| ->]; [apply c1; auto|]. simpl.
    destruct (b1 _ H) as (K & Fl & Mk & Hk & Fb). destruct (f2 _ H0) as [_ Ff].
    repeat split; auto; lia.
Qed.

Lemma reached_sound w : reached w -> sound w.
Proof. induction 1; [apply start_sound|eapply step_sound; eauto]. Qed.

(* The versions of an owner are one stretch, which begins right after the one that it read. *)
Lemma owners_write_in_one_stretch w (I : sound w) o v :
  wrote w o v -> forall u, base (owners w o) < u <= v -> wrote w o u.
Proof.
  induction v as [|v IH]; intros [h E] u L; [lia|].
  destruct (Nat.eq_dec u (S v)) as [->|N]; [exists h; auto|].
  destruct (written_sound w I _ _ _ E) as (_ & _ & _ & [M|M] & _); [lia|]. simpl in M. apply IH; auto. lia.
Qed.

(* Whoever writes after another owner has read that owner's horizon, or a later one. *)
Lemma later_owners_read_later w (I : sound w) o o' v v' h h' :
  written w v = Some (o, h) -> written w v' = Some (o', h') -> v < v' -> o <> o' -> v <= base (owners w o').
Proof.
  intros E E' L N. destruct (le_lt_dec v (base (owners w o'))) as [|Lt]; [lia|]. exfalso.
  destruct (owners_write_in_one_stretch w I o' v' (ex_intro _ h' E') v) as [x Ex]; [lia|]. congruence.
Qed.

(* What an owner has used lies below every horizon from then on, its own and others'. *)
Lemma used_lies_below_later_horizons w (I : sound w) o t v0 h0 :
  used w o t -> written w v0 = Some (o, h0) -> t < h0 ->
  forall v, v0 <= v <= now_at w -> t < horizon_at w v.
Proof.
  intros U E0 L0.
  assert (G : forall n v, v = v0 + n -> v <= now_at w -> t < horizon_at w v).
  2: { intros v L. apply (G (v - v0)); lia. }
  induction n as [n IH] using lt_wf_ind. intros v -> Lw.
  destruct n as [|n].
  { rewrite Nat.add_0_r. unfold horizon_at. rewrite E0. auto. }
  pose proof (versions w I _ _ _ E0) as R0.
  destruct (no_gaps w I (v0 + S n)) as (o' & h' & E'); [lia|].
  destruct (written_sound w I _ _ _ E') as (B' & R' & F' & M' & Mono').
  destruct (Nat.eq_dec o' o) as [->|No].
  - assert (Lp : t < horizon_at w (v0 + n)) by (apply (IH n); lia).
    unfold horizon_at at 1. rewrite E'.
    destruct Mono' as [Mo|[St ->]].
    + replace (pred (v0 + S n)) with (v0 + n) in Mo by lia. lia.
    + destruct (used_sound w I _ _ U) as (_ & _ & G & _). auto.
  - pose proof (later_owners_read_later w I o o' v0 (v0 + S n) h0 h' E0 E' ltac:(lia) ltac:(auto)).
    unfold horizon_at at 1. rewrite E'.
    destruct (owner_sound w I _ B') as (_ & Fl & _).
    assert (t < horizon_at w (base (owners w o'))) by (apply (IH (base (owners w o') - v0)); lia). lia.
Qed.

(* ===== The theorem ===== *)

(* All that was ever used lies below the horizon that the store has now. *)
Theorem used_lies_below_the_horizon w : reached w -> forall o t, used w o t -> t < horizon_at w (now_at w).
Proof.
  intros R o t U. pose proof (reached_sound w R) as I.
  destruct (used_sound w I _ _ U) as (_ & _ & _ & v & h & E & L).
  pose proof (versions w I _ _ _ E).
  eapply used_lies_below_later_horizons; eauto; lia.
Qed.

(* In every world that can be reached, whatever two owners have used, they have used no instant both. *)
Theorem no_instant_has_two_owners w : reached w ->
  forall o1 o2 t, used w o1 t -> used w o2 t -> o1 = o2.
Proof.
  intros R. pose proof (reached_sound w R) as I.
  assert (H : forall o1 o2 t v1 h1 v2 h2, used w o1 t -> used w o2 t -> written w v1 = Some (o1, h1) -> t < h1 ->
    written w v2 = Some (o2, h2) -> v1 < v2 -> o1 = o2).
  { intros o1 o2 t v1 h1 v2 h2 U1 U2 E1 L1 E2 Lt.
    destruct (Nat.eq_dec o1 o2) as [|N]; auto. exfalso.
    destruct (written_sound w I _ _ _ E2) as (B2 & R2 & F2' & _).
    pose proof (versions w I _ _ _ E2). pose proof (versions w I _ _ _ E1).
    pose proof (later_owners_read_later w I o1 o2 v1 v2 h1 h2 E1 E2 Lt N).
    assert (t < horizon_at w (base (owners w o2))).
    { eapply (used_lies_below_later_horizons w I o1 t v1 h1 U1 E1 L1); lia. }
    destruct (owner_sound w I _ B2) as (_ & Fl & _). destruct (used_sound w I _ _ U2) as (_ & Ft & _). lia. }
  intros o1 o2 t U1 U2.
  destruct (used_sound w I _ _ U1) as (_ & _ & _ & v1 & h1 & E1 & L1).
  destruct (used_sound w I _ _ U2) as (_ & _ & _ & v2 & h2 & E2 & L2).
  destruct (lt_eq_lt_dec v1 v2) as [[Lt|Eq]|Gt].
  - eapply H; eauto.
  - subst. congruence.
  - symmetry. eapply (H o2 o1); eauto.
Qed.

(* The model is not empty: two owners can use a node ID, one after the other, while the first is still about. *)
Theorem owners_follow_each_other : exists w, reached w /\ used w 1 5 /\ used w 2 15.
Proof.
  pose (w1 := read start 1 0).
  assert (R1 : reached w1) by (eapply Next; [apply Start|apply Read; cbn; auto]).
  pose (w2 := send w1 (Write 1 0 10)).
  assert (R2 : reached w2) by (eapply Next; [exact R1|apply (Send w1 1 10); cbn; auto with arith]).
  pose (w3 := apply w2 (Write 1 0 10)).
  assert (R3 : reached w3) by (eapply Next; [exact R2|apply Apply; cbn; auto]).
  pose (w4 := learn w3 1 1 10).
  assert (R4 : reached w4) by (eapply Next; [exact R3|apply Learn; cbn; auto]).
  pose (w5 := use w4 1 5).
  assert (R5 : reached w5) by (eapply Next; [exact R4|apply Use; cbn; auto; lia]).
  pose (w6 := read w5 2 10).
  assert (R6 : reached w6) by (eapply Next; [exact R5|apply Read; cbn; auto]).
  pose (w7 := send w6 (Write 2 1 20)).
  assert (R7 : reached w7) by (eapply Next; [exact R6|apply (Send w6 2 20); cbn; auto; lia]).
  pose (w8 := apply w7 (Write 2 1 20)).
  assert (R8 : reached w8) by (eapply Next; [exact R7|apply Apply; cbn; auto]).
  pose (w9 := learn w8 2 2 20).
  assert (R9 : reached w9) by (eapply Next; [exact R8|apply Learn; cbn; auto]).
  exists (use w9 2 15). split.
  - eapply Next; [exact R9|apply Use; cbn; auto; lia].
  - cbn. auto.
Qed.
