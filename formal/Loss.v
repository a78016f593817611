(* A store that has lost writes: what the rule promises, and on which assumptions.

   A store was wiped or set back: it no longer knows how far a node ID was used. Then begins another era of the node ID,
   in which the store knows nothing of the former ones, whose owners may still use what they had reserved. The floor for
   everybody is a key of the same store: after a loss it may be any that was ever there, open or not, or none. Whoever
   notices the loss opens it, or settles it if its clock is believed. This file proves that no instant is used in two eras,
   however many losses there are and however soon one follows another, if

   - somebody notices each loss before anybody claims after it (Begins needs told);
   - owners of a former era write nothing in a later one, neither by mistaking the version of a key nor late
     (Sends and Applies are of the present era);
   - no member's window is longer than the longest that the member knows of that settles the floor;
   - clocks that are believed agree: one that is read later shows at most `skew` less than any showed before that was
     believed. What a clock shows that is refused (`out`) does not matter; and
   - an operator resumes only if all owners of former eras have stopped, and no clock of theirs was ahead.

   This is the only place where a clock appears. If the store keeps its writes, there is one era, and no clock matters. What
   the store still has of a former era only raises floors: Begins may choose any that is late enough. *)

From Coq Require Import Arith Lia.
From Firn Require Import Fence.

(* ===== The model ===== *)

Definition era := nat.

Record history := History {
  present : era;            (* how often the store has lost writes *)
  worlds  : era -> world;   (* the node ID as Fence.v has it, in each era *)
  top     : era -> instant; (* the latest time that any believed clock had shown when the era ended, or until now *)
  from    : instant;        (* floor.Floor.From, as the store has it now: nobody may use the node ID before *)
  open    : bool;           (* floor.Floor.Open: nobody may claim *)
  told    : era -> bool }.  (* somebody has noticed the loss with which the era began *)

Definition start : history := History 0 (fun _ => Fence.start) (fun _ => 0) 0 false (fun i => i =? 0).

Definition in_era (y : history) (i : era) (w : world) : history :=
  History (present y) (set (worlds y) i w) (top y) (from y) (open y) (told y).
Definition shows (y : history) (c : instant) : history :=
  History (present y) (worlds y) (set (top y) (present y) (max c (top y (present y)))) (from y) (open y) (told y).
Definition floored (y : history) (f : instant) (b : bool) : history :=
  History (present y) (worlds y) (top y) f b (set (told y) (present y) true).

(* May a clock that is believed show this now? *)
Definition agrees (skew : nat) (y : history) (c : instant) : Prop := top y (present y) <= c + skew.

(* No owner of this world makes an ID any more, nor has any made one at m or later. *)
Definition quiet (w : world) (m : instant) : Prop :=
  forall o, began (owners w o) = true -> ended (owners w o) = true /\ last (owners w o) <= m.

(* out y c: a clock that shows c now is refused, or nobody can say whether it is right (floor.Opposed). *)
Inductive step (window skew : nat) (out : history -> instant -> Prop) (y : history) : history -> Prop :=

(* fence.Step with Due, while Claiming or Held, by a clock that shows c: the horizon lies at most a window ahead of it. A
   claim's may lie further, but then it is the floor, and nothing lies in between. *)
| Sends o h c :
    ~ out y c ->
    let a := owners (worlds y (present y)) o in
    began a = true -> ended a = false -> bound a <= h ->
    h <= max (c + window) (floor a) ->
    step window skew out y (in_era (shows y c) (present y) (send (worlds y (present y)) (Write o (known a) h)))

(* fence.Step with Due, while Releasing. *)
| Releases o :
    let a := owners (worlds y (present y)) o in
    began a = true -> ended a = true ->
    step window skew out y (in_era y (present y) (send (worlds y (present y)) (Write o (known a) (last a))))

(* store.Store.Commit. *)
| Applies x :
    sent (worlds y (present y)) x -> expects x = now_at (worlds y (present y)) ->
    step window skew out y (in_era y (present y) (apply (worlds y (present y)) x))

(* fence.Claim reads the keys, on or after the floor, once floor.Floor.Claim lets it. *)
| Begins o f :
    told y (present y) = true -> open y = false -> from y <= f ->
    began (owners (worlds y (present y)) o) = false ->
    horizon_at (worlds y (present y)) (now_at (worlds y (present y))) <= f ->
    step window skew out y (in_era y (present y) (read (worlds y (present y)) o f))

(* fence.Step with Applied or Seen, in any era: of what was written in it. *)
| Learns i o v h :
    i <= present y -> written (worlds y i) v = Some (o, h) -> known (owners (worlds y i) o) <= v ->
    step window skew out y (in_era y i (learn (worlds y i) o v h))

(* firn.Generator.Next, in any era: owners of a former one use up what they had reserved. *)
| Uses i o t :
    let a := owners (worlds y i) o in
    i <= present y -> began a = true -> ended a = false -> floor a <= t -> t < bound a ->
    step window skew out y (in_era y i (use (worlds y i) o t))

(* fence.Fence.Release, in any era: the end lies at or below the bound, since firn.Generator.Stop returns the end of a tick
   that was used. *)
| Stops i o e :
    let a := owners (worlds y i) o in
    i <= present y -> began a = true -> ended a = false -> floor a <= e -> e <= bound a ->
    (forall t, used (worlds y i) o t -> t < e) ->
    step window skew out y (in_era y i (stop (worlds y i) o e))

(* The store loses writes (store.ErrRolledBack), among them that of the floor: it has any. *)
| Loses f b :
    step window skew out y (History (S (present y)) (worlds y) (set (top y) (S (present y)) (top y (present y))) f b (told y))

(* floor.Floor.Lost by a member whose clock is not believed, or floor.Open by a store. *)
| Opens : step window skew out y (floored y (from y) true)

(* floor.Floor.Lost or floor.Floor.Claim by a member whose clock shows c and is believed: it writes floor.Floor.least or
   a later instant, whatever was there. *)
| Settles c f :
    ~ out y c -> c + window + skew <= f ->
    step window skew out y (floored (shows y c) f false)

(* floor.Floor.Lost by the same: what is there will do. *)
| Keeps c :
    ~ out y c -> open y = false -> c + window + skew <= from y ->
    step window skew out y (floored (shows y c) (from y) false)

(* floor.Floor.Resume: an operator says that all who made IDs have stopped, and that no clock of theirs was ahead of c. *)
| Resumes c :
    (forall i, i < present y -> quiet (worlds y i) c) ->
    step window skew out y (floored y c false).

Inductive reached (window skew : nat) (out : history -> instant -> Prop) : history -> Prop :=
| Start : reached window skew out start
| Next y y' : reached window skew out y -> step window skew out y y' -> reached window skew out y'.

(* ===== The proof ===== *)

(* In a world of one era, no horizon lies above b, but for those that are their owner's floor. *)
Record near (b : instant) (w : world) : Prop := {
  bound_near : forall o, began (owners w o) = true -> bound (owners w o) <= max b (floor (owners w o));
  last_near : forall o, ended (owners w o) = true -> last (owners w o) <= max b (floor (owners w o));
  sent_near : forall x, sent w x -> horizon x <= max b (floor (owners w (writer x)));
  written_near : forall v o h, written w v = Some (o, h) -> h <= max b (floor (owners w o)) }.

(* Nothing of an era is used at m or later. *)
Definition clear (window : nat) (y : history) (i : era) (m : instant) : Prop :=
  top y i + window <= m \/ quiet (worlds y i) m.

Record sound (window : nat) (y : history) : Prop := {
  eras_reached : forall i, Fence.reached (worlds y i);
  eras_near : forall i, near (top y i + window) (worlds y i);
  not_yet : forall i, present y < i -> worlds y i = Fence.start /\ told y i = false;
  top_grows : forall i j, i <= j <= present y -> top y i <= top y j;
  from_clear : told y (present y) = true -> open y = false -> forall i, i < present y -> clear window y i (from y);
  floors_clear : forall i j o, i < j <= present y -> began (owners (worlds y j) o) = true ->
    clear window y i (floor (owners (worlds y j) o)) }.

Lemma set_same {A} (f : nat -> A) k x : set f k x k = x.
Proof. unfold set. rewrite Nat.eqb_refl. auto. Qed.
Lemma set_other {A} (f : nat -> A) k x i : i <> k -> set f k x i = f i.
Proof. intros N. unfold set. destruct (Nat.eqb_spec i k); congruence. Qed.
Ltac sets := repeat first [rewrite set_same | rewrite set_other by (assumption || lia || auto)].

Lemma nobody_is_near b : near b Fence.start.
Proof. split; simpl; try discriminate; tauto. Qed.

Lemma near_later b b' w : b <= b' -> near b w -> near b' w.
Proof.
  intros L [bn ln sn wn]. split; auto.
  - intros o B. specialize (bn o B). lia.
  - intros o B. specialize (ln o B). lia.
  - intros x B. specialize (sn x B). lia.
  - intros v o h B. specialize (wn v o h B). lia.
Qed.

Lemma clear_later window y i m m' : m <= m' -> clear window y i m -> clear window y i m'.
Proof.
  intros L [T|Q]; [left; lia|right]. intros o B. destruct (Q o B). split; auto. lia.
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
  intros [er en ny tg fc lc]. split; simpl; auto.
  - intros i. eapply near_later; [|apply en]. destruct (Nat.eq_dec i (present y)) as [->|]; sets; auto; lia.
  - intros i j L. pose proof (tg i (present y) ltac:(lia)).
    destruct (Nat.eq_dec j (present y)) as [->|]; destruct (Nat.eq_dec i (present y)) as [->|]; sets; try lia.
    apply tg. lia.
  - intros T O i L. specialize (fc T O i L). unfold clear in *. simpl. sets. auto.
  - intros i j o L B. specialize (lc i j o L B). unfold clear in *. simpl. sets. auto.
Qed.

(* A step within an era. Of a former one, it wakes nobody; and whoever begins does so where nothing of former eras is used. *)
Lemma in_era_sound window y i w : sound window y -> i <= present y -> Fence.step (worlds y i) w ->
  near (top y i + window) w ->
  (i < present y -> forall m, quiet (worlds y i) m -> quiet w m) ->
  (forall o, began (owners w o) = true ->
    began (owners (worlds y i) o) = true /\ floor (owners w o) = floor (owners (worlds y i) o) \/
    forall k, k < i -> clear window y k (floor (owners w o))) ->
  sound window (in_era y i w).
Proof.
  intros [er en ny tg fc lc] L S N Q F.
  assert (C : forall k m, k < present y -> clear window y k m -> clear window (in_era y i w) k m).
  { intros k m K [T|U]; [left; auto|right]. simpl. destruct (Nat.eq_dec k i) as [->|]; sets; auto. }
  split; simpl; auto.
  - intros j. destruct (Nat.eq_dec j i) as [->|]; sets; auto. eapply Fence.Next; eauto.
  - intros j. destruct (Nat.eq_dec j i) as [->|]; sets; auto.
  - intros j J. sets. auto.
  - intros k j o K. destruct (Nat.eq_dec j i) as [->|]; sets.
    + intros B. apply C; [lia|]. destruct (F o B) as [[B' ->]|G]; [apply lc; auto|apply G; lia].
    + intros B. apply C; [lia|]. apply lc; auto.
Qed.

(* The floor is written, and nothing of former eras is used from there on. *)
Lemma floored_sound window y f b : sound window y -> (b = false -> forall i, i < present y -> clear window y i f) ->
  sound window (floored y f b).
Proof.
  intros [er en ny tg fc lc] C. split; simpl; auto. intros i L. sets. auto.
Qed.

Ltac owner_by a o := let Q := fresh in destruct (Nat.eq_dec a o) as [Q|]; [rewrite Q in *|]; sets; simpl.
Ltac quiet_still := let Q := fresh in intros ? ? Q ?; apply Q.
Ltac same_owners := let o := fresh in let B := fresh in intros o B; left; auto.

Lemma step_sound window skew out y y' : (forall y c, ~ out y c -> agrees skew y c) ->
  sound window y -> step window skew out y y' -> sound window y'.
Proof.
  intros A I S. destruct S.
  - (* Sends *)
    pose proof (shows_sound window y c I) as J.
    apply in_era_sound; auto; try solve [apply Send; auto|quiet_still|same_owners].
    destruct (eras_near _ _ J (present y)) as [bn ln sn wn]. simpl in *.
    rewrite set_same in *.
    split; simpl; auto. intros x [X| ->]; auto. simpl. fold a. lia.
  - (* Releases *)
    apply in_era_sound; auto; try solve [apply Release; auto|quiet_still|same_owners].
    destruct (eras_near _ _ I (present y)) as [bn ln sn wn].
    split; simpl; auto. intros x [X| ->]; auto. simpl. apply ln. auto.
  - (* Applies *)
    apply in_era_sound; auto; try solve [apply Apply; auto|quiet_still|same_owners].
    destruct (eras_near _ _ I (present y)) as [bn ln sn wn].
    split; simpl; auto. intros v o h. owner_by v (S (now_at (worlds y (present y)))); eauto.
    intros E. inversion E; subst. auto.
  - (* Begins *)
    assert (S : Fence.step (worlds y (present y)) (read (worlds y (present y)) o f)) by (apply Read; auto).
    apply in_era_sound; auto; [|intros; lia|].
    + pose proof (reached_sound _ (eras_reached _ _ I (present y))) as K.
      destruct (eras_near _ _ I (present y)) as [bn ln sn wn].
      split; simpl; auto.
      * intros b. owner_by b o; auto. lia.
      * intros b. owner_by b o; auto. discriminate.
      * intros x X. pose proof (sent_sound _ K x X) as (B & _). owner_by (writer x) o; auto. congruence.
      * intros v b h E. pose proof (written_sound _ K v b h E) as (B & _). owner_by b o; eauto. congruence.
    + intros b. simpl. owner_by b o; auto. intros _. right. intros k L.
      eapply clear_later; [|apply (from_clear _ _ I)]; eauto.
  - (* Learns *)
    apply in_era_sound; auto; [apply Learn; auto| | |].
    + pose proof (reached_sound _ (eras_reached _ _ I i)) as K.
      pose proof (written_sound _ K _ _ _ H0) as (Bo & _).
      destruct (eras_near _ _ I i) as [bn ln sn wn].
      split; simpl.
      * intros b. owner_by b o; auto. intros B. specialize (bn o Bo). specialize (wn _ _ _ H0). lia.
      * intros b. owner_by b o; auto; apply ln.
      * intros x X. specialize (sn x X). owner_by (writer x) o; auto.
      * intros u b k E. specialize (wn u b k E). owner_by b o; auto.
    + intros L m Q b. simpl. owner_by b o; apply Q.
    + intros b. simpl. owner_by b o; auto.
  - (* Uses *)
    apply in_era_sound; auto; try solve [apply Use; auto|quiet_still|same_owners].
    destruct (eras_near _ _ I i) as [bn ln sn wn]. split; simpl; auto.
  - (* Stops *)
    apply in_era_sound; auto; [apply Stop; auto| | |].
    + destruct (eras_near _ _ I i) as [bn ln sn wn]. split; simpl.
      * intros b. owner_by b o; auto; apply bn.
      * intros b. owner_by b o; auto. specialize (bn o H0). fold a in bn. fold a. lia.
      * intros x X. specialize (sn x X). owner_by (writer x) o; auto.
      * intros u b k E. specialize (wn u b k E). owner_by b o; auto.
    + intros L m Q b. simpl. owner_by b o; [|apply Q]. intros B. destruct (Q o B) as [Ed _]. change (ended a = true) in Ed. congruence.
    + intros b. simpl. owner_by b o; auto.
  - (* Loses *)
    destruct I as [er en ny tg fc lc]. split; simpl; auto.
    + intros i. owner_by i (S (present y)); auto.
      destruct (ny (S (present y)) ltac:(lia)) as [-> _]. apply nobody_is_near.
    + intros i L. apply ny. lia.
    + intros i j L. owner_by j (S (present y)); owner_by i (S (present y)); try lia; apply tg; lia.
    + intros T. destruct (ny (S (present y)) ltac:(lia)). congruence.
    + intros i j o L B. owner_by j (S (present y)).
      * destruct (ny (S (present y)) ltac:(lia)) as [E _]. rewrite E in B. discriminate.
      * specialize (lc i j o ltac:(lia) B). unfold clear in *. simpl. sets. auto.
  - (* Opens *)
    apply floored_sound; auto. discriminate.
  - (* Settles *)
    apply floored_sound; [apply shows_sound; auto|]. simpl. intros _ i L. left. simpl. sets.
    pose proof (A _ _ H) as G. unfold agrees in G. pose proof (top_grows _ _ I i (present y) ltac:(lia)). lia.
  - (* Keeps *)
    apply floored_sound; [apply shows_sound; auto|]. simpl. intros _ i L. left. simpl. sets.
    pose proof (A _ _ H) as G. unfold agrees in G. pose proof (top_grows _ _ I i (present y) ltac:(lia)). lia.
  - (* Resumes *)
    apply floored_sound; auto. intros _ i L. right. auto.
Qed.

Lemma reached_sound window skew out y : (forall y c, ~ out y c -> agrees skew y c) -> reached window skew out y -> sound window y.
Proof. intros A. induction 1; [apply start_sound|eapply step_sound; eauto]. Qed.

(* ===== The theorem ===== *)

(* Under the assumptions above: no instant of a node ID is used by two owners, of one era or of two. *)
Theorem no_instant_is_used_again_after_a_loss window skew out y : (forall y c, ~ out y c -> agrees skew y c) ->
  reached window skew out y ->
  forall i j o o' t, used (worlds y i) o t -> used (worlds y j) o' t -> i = j /\ o = o'.
Proof.
  intros C R. pose proof (reached_sound _ _ _ _ C R) as I.
  assert (E : forall i j o o' t, i < j -> used (worlds y i) o t -> used (worlds y j) o' t -> False).
  { intros i j o o' t L U V.
    pose proof (Fence.reached_sound _ (eras_reached _ _ I i)) as A.
    pose proof (Fence.reached_sound _ (eras_reached _ _ I j)) as B.
    destruct (used_sound _ A _ _ U) as (Bo & Fl & En & v & h & W & T).
    destruct (used_sound _ B _ _ V) as (Bg & Fl' & _).
    assert (j <= present y).
    { destruct (le_lt_dec j (present y)) as [|Lt]; auto. destruct (not_yet _ _ I _ Lt) as [Z _].
      rewrite Z in Bg. discriminate. }
    destruct (floors_clear _ _ I i j o' ltac:(lia) Bg) as [Top|Q].
    - pose proof (written_near _ _ (eras_near _ _ I i) _ _ _ W). lia.
    - destruct (Q o Bo) as [Ed La]. specialize (En Ed). lia. }
  intros i j o o' t U V. destruct (lt_eq_lt_dec i j) as [[L|Eq]|L].
  - exfalso. eapply E; eauto.
  - subst. split; auto. eapply no_instant_has_two_owners; eauto. apply (eras_reached _ _ I).
  - exfalso. eapply (E j i); eauto.
Qed.

(* The model is not empty: IDs can be made after a second loss, though the store has the floor of the first again. *)
Definition wrong (skew : nat) (y : history) (c : instant) : Prop := ~ agrees skew y c.

Lemma who_is_not_wrong_agrees skew y c : ~ wrong skew y c -> agrees skew y c.
Proof. unfold wrong, agrees. lia. Qed.

Ltac ok := unfold wrong, agrees; cbn; auto; try discriminate; try lia.
Ltac next R s := eapply Next; [exact R|s; ok].

Theorem ids_are_given_after_two_losses : exists y, reached 1 1 (wrong 1) y /\ used (worlds y 1) 1 2 /\ used (worlds y 2) 2 5.
Proof.
  pose (y1 := History 1 (worlds start) (set (top start) 1 0) 0 false (told start)).
  assert (R1 : reached 1 1 (wrong 1) y1) by (next (Start 1 1 (wrong 1)) ltac:(apply (Loses 1 1 (wrong 1) start 0 false))).
  pose (y2 := floored (shows y1 0) 2 false).
  assert (R2 : reached 1 1 (wrong 1) y2) by (next R1 ltac:(apply (Settles 1 1 (wrong 1) y1 0 2))).
  pose (y3 := in_era y2 1 (read (worlds y2 1) 1 2)).
  assert (R3 : reached 1 1 (wrong 1) y3) by (next R2 ltac:(apply (Begins 1 1 (wrong 1) y2 1 2))).
  pose (y4 := in_era (shows y3 2) 1 (send (worlds y3 1) (Write 1 0 3))).
  assert (R4 : reached 1 1 (wrong 1) y4) by (next R3 ltac:(apply (Sends 1 1 (wrong 1) y3 1 3 2))).
  pose (y5 := in_era y4 1 (apply (worlds y4 1) (Write 1 0 3))).
  assert (R5 : reached 1 1 (wrong 1) y5) by (next R4 ltac:(apply (Applies 1 1 (wrong 1) y4))).
  pose (y6 := in_era y5 1 (learn (worlds y5 1) 1 1 3)).
  assert (R6 : reached 1 1 (wrong 1) y6) by (next R5 ltac:(apply (Learns 1 1 (wrong 1) y5 1 1 1 3))).
  pose (y7 := in_era y6 1 (use (worlds y6 1) 1 2)).
  assert (R7 : reached 1 1 (wrong 1) y7) by (next R6 ltac:(apply (Uses 1 1 (wrong 1) y6 1 1 2))).
  pose (y8 := History 2 (worlds y7) (set (top y7) 2 (top y7 1)) 2 false (told y7)).
  assert (R8 : reached 1 1 (wrong 1) y8) by (next R7 ltac:(apply (Loses 1 1 (wrong 1) y7 2 false))).
  pose (y9 := floored y8 2 true).
  assert (R9 : reached 1 1 (wrong 1) y9) by (next R8 ltac:(apply (Opens 1 1 (wrong 1) y8))).
  pose (z2 := floored (shows y9 3) 5 false).
  assert (S2 : reached 1 1 (wrong 1) z2) by (next R9 ltac:(apply (Settles 1 1 (wrong 1) y9 3 5))).
  pose (z3 := in_era z2 2 (read (worlds z2 2) 2 5)).
  assert (S3 : reached 1 1 (wrong 1) z3) by (next S2 ltac:(apply (Begins 1 1 (wrong 1) z2 2 5))).
  pose (z4 := in_era (shows z3 5) 2 (send (worlds z3 2) (Write 2 0 6))).
  assert (S4 : reached 1 1 (wrong 1) z4) by (next S3 ltac:(apply (Sends 1 1 (wrong 1) z3 2 6 5))).
  pose (z5 := in_era z4 2 (apply (worlds z4 2) (Write 2 0 6))).
  assert (S5 : reached 1 1 (wrong 1) z5) by (next S4 ltac:(apply (Applies 1 1 (wrong 1) z4))).
  pose (z6 := in_era z5 2 (learn (worlds z5 2) 2 1 6)).
  assert (S6 : reached 1 1 (wrong 1) z6) by (next S5 ltac:(apply (Learns 1 1 (wrong 1) z5 2 2 1 6))).
  pose (z7 := in_era z6 2 (use (worlds z6 2) 2 5)).
  assert (S7 : reached 1 1 (wrong 1) z7) by (next S6 ltac:(apply (Uses 1 1 (wrong 1) z6 2 2 5))).
  exists z7. split; [exact S7|]. split; unfold z7, z6, z5, z4, z3, z2, y9, y8, y7, y6, y5, y4, y3, y2, y1; cbn; tauto.
Qed.
