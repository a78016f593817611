(* A store that has lost writes: what the rule promises, and on which assumptions.

   A store was wiped or set back: it no longer knows how far a node ID was used. Then begins another era of the node ID,
   in which the store knows nothing of the former ones, whose owners may still use what they had reserved. A running node that
   notices the loss writes a floor for everybody. This file proves that no instant is used in two eras, if

   - a node notices before anybody claims (there is no Begins before Notices);
   - owners of a former era write nothing in a later one, neither by mistaking the version of a key nor late
     (Sends and Applies are of the present era);
   - no member's window is longer than the one that the node goes by; and
   - clocks agree: a clock that is read later shows at most `skew` less than any clock showed before.

   This is the only place where a clock appears. If the store keeps its writes, there is one era, and no clock matters. What
   the store still has of a former era only raises floors: Begins may choose any that is late enough. *)

From Coq Require Import Arith Lia.
From Firn Require Import Fence.

(* ===== The model ===== *)

Definition era := nat.

Record history := History {
  present : era;                      (* how often the store has lost writes *)
  worlds  : era -> world;             (* the node ID as Fence.v has it, in each era *)
  top     : era -> instant;           (* the latest time that any clock had shown when the era ended, or until now *)
  must    : era -> option instant }.  (* floor.Floor.From: nobody may use the node ID before; None: nobody has noticed *)

Definition start : history := History 0 (fun _ => Fence.start) (fun _ => 0) (fun i => if i =? 0 then Some 0 else None).

Definition in_era (y : history) (i : era) (w : world) : history :=
  History (present y) (set (worlds y) i w) (top y) (must y).
Definition shows (y : history) (c : instant) : history :=
  History (present y) (worlds y) (set (top y) (present y) (max c (top y (present y)))) (must y).

(* May a clock show this now? *)
Definition agrees (skew : nat) (y : history) (c : instant) : Prop := top y (present y) <= c + skew.

Inductive step (window skew : nat) (y : history) : history -> Prop :=

(* fence.Step with Due, while Claiming or Held, by a clock that shows c: the horizon lies at most a window ahead of it. A
   claim's may lie further, but then it is the floor, and nothing lies in between. *)
| Sends o h c :
    agrees skew y c ->
    let a := owners (worlds y (present y)) o in
    began a = true -> ended a = false -> bound a <= h ->
    h <= max (c + window) (floor a) ->
    step window skew y (in_era (shows y c) (present y) (send (worlds y (present y)) (Write o (known a) h)))

(* fence.Step with Due, while Releasing. *)
| Releases o :
    let a := owners (worlds y (present y)) o in
    began a = true -> ended a = true ->
    step window skew y (in_era y (present y) (send (worlds y (present y)) (Write o (known a) (last a))))

(* store.Store.Commit. *)
| Applies x :
    sent (worlds y (present y)) x -> expects x = now_at (worlds y (present y)) ->
    step window skew y (in_era y (present y) (apply (worlds y (present y)) x))

(* fence.Claim reads the keys, on or after the floor that member.Member.floored has read. *)
| Begins o f m :
    must y (present y) = Some m -> m <= f ->
    began (owners (worlds y (present y)) o) = false ->
    horizon_at (worlds y (present y)) (now_at (worlds y (present y))) <= f ->
    step window skew y (in_era y (present y) (read (worlds y (present y)) o f))

(* fence.Step with Applied or Seen, in any era: of what was written in it. *)
| Learns i o v h :
    i <= present y -> written (worlds y i) v = Some (o, h) -> known (owners (worlds y i) o) <= v ->
    step window skew y (in_era y i (learn (worlds y i) o v h))

(* firn.Generator.Next, in any era: owners of a former one use up what they had reserved. *)
| Uses i o t :
    let a := owners (worlds y i) o in
    i <= present y -> began a = true -> ended a = false -> floor a <= t -> t < bound a ->
    step window skew y (in_era y i (use (worlds y i) o t))

(* fence.Fence.Release, in any era: the end lies at or below the bound, since firn.Generator.Stop returns the end of a tick
   that was used. *)
| Stops i o e :
    let a := owners (worlds y i) o in
    i <= present y -> began a = true -> ended a = false -> floor a <= e -> e <= bound a ->
    (forall t, used (worlds y i) o t -> t < e) ->
    step window skew y (in_era y i (stop (worlds y i) o e))

(* The store loses writes (store.ErrRolledBack). *)
| Loses :
    step window skew y (History (S (present y)) (worlds y) (set (top y) (S (present y)) (top y (present y))) (must y))

(* member.Member.tellFloor: a node whose clock shows c writes the floor (floor.Above), or a later one. *)
| Notices c f :
    agrees skew y c -> must y (present y) = None -> c + window + skew <= f ->
    step window skew y (let z := shows y c in History (present z) (worlds z) (top z) (set (must z) (present z) (Some f))).

Inductive reached (window skew : nat) : history -> Prop :=
| Start : reached window skew start
| Next y y' : reached window skew y -> step window skew y y' -> reached window skew y'.

(* ===== The proof ===== *)

(* In a world of one era, no horizon lies above b, but for those that are their owner's floor; and no floor below m. *)
Record near (b : instant) (m : option instant) (w : world) : Prop := {
  bound_near : forall o, began (owners w o) = true -> bound (owners w o) <= max b (floor (owners w o));
  last_near : forall o, ended (owners w o) = true -> last (owners w o) <= max b (floor (owners w o));
  sent_near : forall x, sent w x -> horizon x <= max b (floor (owners w (writer x)));
  written_near : forall v o h, written w v = Some (o, h) -> h <= max b (floor (owners w o));
  floor_above : forall o, began (owners w o) = true -> exists k, m = Some k /\ k <= floor (owners w o) }.

Record sound (window : nat) (y : history) : Prop := {
  eras_reached : forall i, Fence.reached (worlds y i);
  eras_near : forall i, near (top y i + window) (must y i) (worlds y i);
  not_yet : forall i, present y < i -> worlds y i = Fence.start /\ must y i = None;
  top_grows : forall i j, i <= j <= present y -> top y i <= top y j;
  must_above : forall i j m, i < j <= present y -> must y j = Some m -> top y i + window <= m }.

Lemma set_same {A} (f : nat -> A) k x : set f k x k = x.
Proof. unfold set. rewrite Nat.eqb_refl. auto. Qed.
Lemma set_other {A} (f : nat -> A) k x i : i <> k -> set f k x i = f i.
Proof. intros N. unfold set. destruct (Nat.eqb_spec i k); congruence. Qed.
Ltac sets := repeat first [rewrite set_same | rewrite set_other by (assumption || lia || auto)].

Lemma nobody_is_near b m : near b m Fence.start.
Proof. split; simpl; try discriminate; tauto. Qed.

Lemma near_later b b' m w : b <= b' -> near b m w -> near b' m w.
Proof.
  intros L [bn ln sn wn fa]. split; auto.
  - intros o B. specialize (bn o B). lia.
  - intros o B. specialize (ln o B). lia.
  - intros x B. specialize (sn x B). lia.
  - intros v o h B. specialize (wn v o h B). lia.
Qed.

(* Nobody has begun before the floor for everybody is there, so it may be any. *)
Lemma near_before b m w : near b None w -> near b m w.
Proof.
  intros [bn ln sn wn fa]. split; auto. intros o B. destruct (fa o B) as (k & E & _). discriminate.
Qed.

Lemma start_sound window : sound window start.
Proof.
  split; simpl; try (intros; lia).
  - intros. apply Fence.Start.
  - intros. apply nobody_is_near.
  - intros i L. destruct i; [lia|auto].
Qed.

(* A clock shows something: nothing else changes. *)
Lemma shows_sound window y c : sound window y -> sound window (shows y c).
Proof.
  intros [er en ny tg ma]. split; simpl; auto.
  - intros i. eapply near_later; [|apply en]. destruct (Nat.eq_dec i (present y)) as [->|]; sets; auto; lia.
  - intros i j L. pose proof (tg i (present y) ltac:(lia)).
    destruct (Nat.eq_dec j (present y)) as [->|]; destruct (Nat.eq_dec i (present y)) as [->|]; sets; try lia.
    apply tg. lia.
  - intros i j m L E. sets. eapply ma; eauto.
Qed.

(* A step within an era. *)
Lemma in_era_sound window y i w : sound window y -> i <= present y -> Fence.step (worlds y i) w ->
  near (top y i + window) (must y i) w -> sound window (in_era y i w).
Proof.
  intros [er en ny tg ma] L S N. split; simpl; auto.
  - intros j. destruct (Nat.eq_dec j i) as [->|]; sets; auto. eapply Fence.Next; eauto.
  - intros j. destruct (Nat.eq_dec j i) as [->|]; sets; auto.
  - intros j J. sets. auto.
Qed.

Ltac owner_by a o := let Q := fresh in destruct (Nat.eq_dec a o) as [Q|]; [rewrite Q in *|]; sets; simpl.

Lemma step_sound window skew y y' : sound window y -> step window skew y y' -> sound window y'.
Proof.
  intros I S. destruct S.
  - (* Sends *)
    pose proof (shows_sound window y c I) as J.
    apply in_era_sound; auto; [apply Send; auto|].
    destruct (eras_near _ _ J (present y)) as [bn ln sn wn fa]. simpl in *.
    rewrite set_same in *.
    split; simpl; auto. intros x [X| ->]; auto. simpl. fold a. lia.
  - (* Releases *)
    apply in_era_sound; auto; [apply Release; auto|].
    destruct (eras_near _ _ I (present y)) as [bn ln sn wn fa].
    split; simpl; auto. intros x [X| ->]; auto. simpl. apply ln. auto.
  - (* Applies *)
    apply in_era_sound; auto; [apply Apply; auto|].
    destruct (eras_near _ _ I (present y)) as [bn ln sn wn fa].
    split; simpl; auto. intros v o h. owner_by v (S (now_at (worlds y (present y)))); eauto.
    intros E. inversion E; subst. auto.
  - (* Begins *)
    assert (S : Fence.step (worlds y (present y)) (read (worlds y (present y)) o f)) by (apply Read; auto).
    apply in_era_sound; auto.
    pose proof (reached_sound _ (eras_reached _ _ I (present y))) as K.
    destruct (eras_near _ _ I (present y)) as [bn ln sn wn fa].
    split; simpl; auto.
    + intros b. owner_by b o; auto. lia.
    + intros b. owner_by b o; auto. discriminate.
    + intros x X. pose proof (sent_sound _ K x X) as (B & _). owner_by (writer x) o; auto. congruence.
    + intros v b h E. pose proof (written_sound _ K v b h E) as (B & _). owner_by b o; eauto. congruence.
    + intros b. owner_by b o; eauto.
  - (* Learns *)
    apply in_era_sound; auto; [apply Learn; auto|].
    pose proof (reached_sound _ (eras_reached _ _ I i)) as K.
    pose proof (written_sound _ K _ _ _ H0) as (Bo & _).
    destruct (eras_near _ _ I i) as [bn ln sn wn fa].
    split; simpl.
    + intros b. owner_by b o; auto. intros B. specialize (bn o Bo). specialize (wn _ _ _ H0). lia.
    + intros b. owner_by b o; auto; apply ln.
    + intros x X. specialize (sn x X). owner_by (writer x) o; auto.
    + intros u b k E. specialize (wn u b k E). owner_by b o; auto.
    + intros b. owner_by b o; auto.
  - (* Uses *)
    apply in_era_sound; auto; [apply Use; auto|].
    destruct (eras_near _ _ I i) as [bn ln sn wn fa]. split; simpl; auto.
  - (* Stops *)
    apply in_era_sound; auto; [apply Stop; auto|].
    destruct (eras_near _ _ I i) as [bn ln sn wn fa]. split; simpl.
    + intros b. owner_by b o; auto; apply bn.
    + intros b. owner_by b o; auto. specialize (bn o H0). fold a in bn. fold a. lia.
    + intros x X. specialize (sn x X). owner_by (writer x) o; auto.
    + intros u b k E. specialize (wn u b k E). owner_by b o; auto.
    + intros b. owner_by b o; auto; apply fa.
  - (* Loses *)
    destruct I as [er en ny tg ma]. split; simpl; auto.
    + intros i. owner_by i (S (present y)); auto.
      destruct (ny (S (present y)) ltac:(lia)) as [-> _]. apply nobody_is_near.
    + intros i L. apply ny. lia.
    + intros i j L. owner_by j (S (present y)); owner_by i (S (present y)); try lia; apply tg; lia.
    + intros i j m L E. sets. owner_by j (S (present y)); [destruct (ny (S (present y)) ltac:(lia)); congruence|].
      eapply ma; eauto. lia.
  - (* Notices *)
    pose proof (shows_sound window y c I) as [er en ny tg ma]. simpl in *. split; simpl; auto.
    + intros i. specialize (en i). destruct (Nat.eq_dec i (present y)) as [->|]; sets; auto.
      rewrite H0, set_same in en. apply near_before; auto.
      rewrite set_other in en; auto.
    + intros i L. sets. auto.
    + intros i j m L E. destruct (Nat.eq_dec j (present y)) as [->|].
      * rewrite set_same in E. inversion E; subst. sets. unfold agrees in H.
        pose proof (top_grows _ _ I i (present y) ltac:(lia)). lia.
      * rewrite set_other in E by auto. eapply ma; eauto.
Qed.

Lemma reached_sound window skew y : reached window skew y -> sound window y.
Proof. induction 1; [apply start_sound|eapply step_sound; eauto]. Qed.

(* ===== The theorem ===== *)

(* Under the assumptions above: no instant of a node ID is used by two owners, of one era or of two. *)
Theorem no_instant_is_used_again_after_a_loss window skew y : reached window skew y ->
  forall i j o o' t, used (worlds y i) o t -> used (worlds y j) o' t -> i = j /\ o = o'.
Proof.
  intros R. pose proof (reached_sound _ _ _ R) as I.
  assert (E : forall i j o o' t, i < j -> used (worlds y i) o t -> used (worlds y j) o' t -> False).
  { intros i j o o' t L U V.
    pose proof (Fence.reached_sound _ (eras_reached _ _ I i)) as A.
    pose proof (Fence.reached_sound _ (eras_reached _ _ I j)) as B.
    destruct (used_sound _ A _ _ U) as (_ & Fl & _ & v & h & W & T).
    destruct (used_sound _ B _ _ V) as (Bg & Fl' & _).
    pose proof (written_near _ _ _ (eras_near _ _ I i) _ _ _ W).
    destruct (floor_above _ _ _ (eras_near _ _ I j) _ Bg) as (m & M & Lm).
    assert (j <= present y) by (destruct (le_lt_dec j (present y)) as [|Lt]; auto; apply (not_yet _ _ I) in Lt; destruct Lt; congruence).
    pose proof (must_above _ _ I i j m ltac:(lia) M). lia. }
  intros i j o o' t U V. destruct (lt_eq_lt_dec i j) as [[L|Eq]|L].
  - exfalso. eapply E; eauto.
  - subst. split; auto. eapply no_instant_has_two_owners; eauto. apply (eras_reached _ _ I).
  - exfalso. eapply (E j i); eauto.
Qed.
