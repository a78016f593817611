(* A sequencer's name: many node IDs, many fences in one transaction, and one generation after another.

   The model has a world of Fence.v for each node ID below the name's prefix, and adds what they share: live keys,
   transactions over several fences, and the key of the generation, whose version every claim is made under. A member whose
   node ID changes is two owners for a while, one at each. A window is nowhere: an owner may choose any horizon.

   Two theorems: each node ID is still as Fence.v has it; and a prefix that was closed stays closed. *)

From Coq Require Import Arith Lia.
From Firn Require Import Fence.

(* ===== The model ===== *)

Definition node := nat.

(* What a transaction does with the live key: fence.Change. *)
Inductive change :=
| Take   (* a claim: only if nobody holds the node ID, and only under the generation's version (fence.Config.Guards) *)
| Keep   (* an extension: only if this owner still holds it *)
| Drop.  (* a release: only if this owner still holds it *)

(* One fence's part of a transaction: fence.Write. *)
Record part := Part { live_key : change; horizon_key : write }.

(* A transaction has a part for some node IDs, one at most for each (store.Txn.Validate). *)
Definition transaction := node -> option part.

Record prefix := Prefix {
  fence  : node -> world;            (* the key last_reported_time/<node>, and its owners *)
  live   : node -> option name;      (* the key live/<node>: whose claim it is of *)
  guard  : version;                  (* the version of the generation's key *)
  opened : version -> option instant;(* under which versions of that key claims are made; after which instant of the
                                        former generations (peer.generation.Until) *)
  seen   : option instant;           (* what fence.Revoke has returned to the member that closes the former ones *)
  under  : node -> name -> version;  (* the version under which an owner claims *)
  posted : transaction -> Prop }.    (* what was ever sent *)

Definition start : prefix :=
  Prefix (fun _ => Fence.start) (fun _ => None) 0 (fun _ => None) None (fun _ _ => 0) (fun _ => False).

(* One fence of the prefix takes a step. *)
Definition at_node (p : prefix) (n : node) (w : world) : prefix :=
  Prefix (set (fence p) n w) (live p) (guard p) (opened p) (seen p) (under p) (posted p).
Definition begin (p : prefix) (n : node) (o : name) (f : instant) (g : version) : prefix :=
  Prefix (set (fence p) n (read (fence p n) o f)) (live p) (guard p) (opened p) (seen p)
    (set (under p) n (set (under p n) o g)) (posted p).
Definition post (p : prefix) (x : transaction) : prefix :=
  Prefix (fun n => match x n with Some a => send (fence p n) (horizon_key a) | None => fence p n end)
    (live p) (guard p) (opened p) (seen p) (under p) (fun y => posted p y \/ y = x).
Definition live_after (p : prefix) (n : node) (a : part) : option name :=
  match live_key a with Take => Some (writer (horizon_key a)) | Keep => live p n | Drop => None end.
Definition commit (p : prefix) (x : transaction) : prefix :=
  Prefix (fun n => match x n with Some a => apply (fence p n) (horizon_key a) | None => fence p n end)
    (fun n => match x n with Some a => live_after p n a | None => live p n end)
    (guard p) (opened p) (seen p) (under p) (posted p).
Definition free (p : prefix) (n : node) : prefix :=
  Prefix (fence p) (set (live p) n None) (guard p) (opened p) (seen p) (under p) (posted p).
Definition look (p : prefix) (h : instant) : prefix :=
  Prefix (fence p) (live p) (guard p) (opened p) (Some h) (under p) (posted p).
Definition turn (p : prefix) (says : option instant) : prefix :=
  Prefix (fence p) (live p) (S (guard p)) (set (opened p) (S (guard p)) says) None (under p) (posted p).

(* May a fence send this part? As in Fence.v: an extension, or, once the generator has stopped, the release. *)
Definition may_send (w : world) (x : write) : Prop :=
  let a := owners w (writer x) in
  began a = true /\ expects x = known a /\
  (ended a = false /\ bound a <= horizon x \/ ended a = true /\ horizon x = last a).

(* Do the conditions of a part hold? *)
Definition holds (p : prefix) (n : node) (a : part) : Prop :=
  expects (horizon_key a) = now_at (fence p n) /\
  match live_key a with
  | Take => live p n = None /\ guard p = under p n (writer (horizon_key a))
  | _ => live p n = Some (writer (horizon_key a))
  end.

Inductive step (p : prefix) : prefix -> Prop :=

(* peer.Sequencer.open finds the version of the generation's key, and fence.Claim reads the node ID's keys: the version was
   current then or before, and is one under which claims are made. *)
| Begin n o f g h :
    began (owners (fence p n) o) = false ->
    horizon_at (fence p n) (now_at (fence p n)) <= f ->
    g <= guard p -> opened p g = Some h ->
    step p (begin p n o f g)

(* fence.commit sends a transaction of one or more fences, of one member: fence.Round.Commit, fence.Claim,
   fence.Fence.Release. *)
| Post x :
    (forall n a, x n = Some a -> may_send (fence p n) (horizon_key a)) ->
    step p (post p x)

(* store.Store.Commit: the store applies all parts of a transaction at once, if the conditions of all hold. *)
| Commit x :
    posted p x -> (forall n a, x n = Some a -> holds p n a) ->
    step p (commit p x)

(* fence.Step with Applied or Seen, as Fence.v's Learn. *)
| Learns n o v h :
    written (fence p n) v = Some (o, h) -> known (owners (fence p n) o) <= v ->
    step p (at_node p n (learn (fence p n) o v h))

(* firn.Generator.Next, as Fence.v's Use. *)
| Uses n o t :
    began (owners (fence p n) o) = true -> ended (owners (fence p n) o) = false ->
    floor (owners (fence p n) o) <= t -> t < bound (owners (fence p n) o) ->
    step p (at_node p n (use (fence p n) o t))

(* fence.Fence.Release, as Fence.v's Stop. *)
| Stops n o e :
    began (owners (fence p n) o) = true -> ended (owners (fence p n) o) = false ->
    floor (owners (fence p n) o) <= e -> (forall t, used (fence p n) o t -> t < e) ->
    step p (at_node p n (stop (fence p n) o e))

(* A live key goes: its session has ended, or fence.Revoke has deleted it. *)
| Free n :
    step p (free p n)

(* peer.generation.successor, put by peer.Member.changeGeneration, or the mark that a sequencer is destroyed: from now on
   no claim under a former version succeeds, and none is made under this one. *)
| Close :
    step p (turn p None)

(* fence.revoke reads a table without live keys: the last horizon of all, while nobody may claim. *)
| Look h :
    opened p (guard p) = None ->
    (forall n, live p n = None) -> (forall n, horizon_at (fence p n) (now_at (fence p n)) <= h) ->
    step p (look p h)

(* peer.generation.closed, put by peer.Member.changeGeneration under the version that the horizon was read under: claims
   are made under the new version. Without a former generation nothing needs to be closed. *)
| Open h :
    opened p (guard p) = None ->
    (seen p = Some h \/ forall g, opened p g = None) ->
    step p (turn p (Some h)).

Inductive reached : prefix -> Prop :=
| Start : reached start
| Next p p' : reached p -> step p p' -> reached p'.

(* ===== The proof ===== *)

Record sound (p : prefix) : Prop := {
  (* Each node ID is a world that Fence.v can reach. *)
  fences : forall n, Fence.reached (fence p n);
  posted_sound : forall x n a, posted p x -> x n = Some a -> sent (fence p n) (horizon_key a);
  live_began : forall n o, live p n = Some o -> began (owners (fence p n) o) = true;
  under_opened : forall n o, began (owners (fence p n) o) = true -> opened p (under p n o) <> None;
  not_yet_opened : forall g, guard p < g -> opened p g = None;
  (* Once looked at, a closed prefix stays as it was. *)
  seen_sound : forall h, seen p = Some h -> opened p (guard p) = None /\ forall n, live p n = None /\
    horizon_at (fence p n) (now_at (fence p n)) <= h;
  (* Owners of former generations hold nothing, and wrote nothing after a moment at which no horizon lay above h. *)
  closed : forall g h, opened p g = Some h -> forall n,
    (forall o, live p n = Some o -> g <= under p n o) /\
    exists v, v <= now_at (fence p n) /\
    (horizon_at (fence p n) v <= h \/ forall u o x, written (fence p n) u = Some (o, x) -> g <= under p n o) /\
    forall u o x, written (fence p n) u = Some (o, x) -> under p n o < g -> u <= v }.

Lemma start_sound : sound start.
Proof. split; simpl; try discriminate; try tauto. intros n. apply Fence.Start. Qed.

Lemma set_same {A} (f : nat -> A) k x : set f k x k = x.
Proof. unfold set. rewrite Nat.eqb_refl. auto. Qed.
Lemma set_other {A} (f : nat -> A) k x i : i <> k -> set f k x i = f i.
Proof. intros N. unfold set. destruct (Nat.eqb_spec i k); congruence. Qed.

Ltac sets := repeat first [rewrite set_same | rewrite set_other by (assumption || lia || auto)].
Ltac sets_in H := repeat first [rewrite set_same in H | rewrite set_other in H by (assumption || lia || auto)].

Lemma writer_began w v o h : Fence.reached w -> written w v = Some (o, h) -> began (owners w o) = true.
Proof. intros R E. apply (written_sound w (reached_sound w R) _ _ _ E). Qed.

Lemma may_send_step w x : may_send w x -> Fence.step w (send w x).
Proof.
  intros (B & E & [[N H]|[T H]]); destruct x as [o e h]; simpl in *; subst.
  - apply Send; auto.
  - apply Release; auto.
Qed.

(* A step of one fence that writes nothing and takes no claim. *)
Lemma at_node_sound p n w : sound p -> Fence.reached w ->
  (forall x, sent (fence p n) x -> sent w x) ->
  now_at w = now_at (fence p n) -> written w = written (fence p n) ->
  (forall o, began (owners w o) = began (owners (fence p n) o)) ->
  sound (at_node p n w).
Proof.
  intros [fs ps lb uo no ss cl] R SE NE WE BE. split; simpl; auto.
  - intros m. destruct (Nat.eq_dec m n); subst; sets; auto.
  - intros x m a P X. specialize (ps _ _ _ P X). destruct (Nat.eq_dec m n); subst; sets; auto.
  - intros m o L. specialize (lb _ _ L). destruct (Nat.eq_dec m n); subst; sets; auto.
    rewrite BE. auto.
  - intros m o B. apply uo. destruct (Nat.eq_dec m n); subst; sets_in B; auto.
    rewrite BE in B. auto.
  - intros h E. destruct (ss _ E) as [O A]. split; auto. intros m. destruct (A m) as [L H]. split; auto.
    destruct (Nat.eq_dec m n); subst; sets; auto.
    unfold horizon_at in *. rewrite NE, WE. auto.
  - intros g h E m. specialize (cl g h E m).
    destruct (Nat.eq_dec m n); subst; sets; auto.
    unfold horizon_at in *. rewrite NE, WE. auto.
Qed.

Lemma step_sound p p' : sound p -> step p p' -> sound p'.
Proof.
  intros I S. pose proof I as [fs ps lb uo no ss cl]. destruct S.
  - (* Begin *)
    assert (NW : forall u x, written (fence p n) u <> Some (o, x)).
    { intros u x E. apply writer_began in E; auto. congruence. }
    assert (NL : live p n <> Some o) by (intros L; apply lb in L; congruence).
    split; simpl; auto.
    + intros m. destruct (Nat.eq_dec m n); subst; sets; auto.
      eapply Fence.Next; [apply fs|apply Read; auto].
    + intros x m a P X. specialize (ps _ _ _ P X). destruct (Nat.eq_dec m n); subst; sets; auto.
    + intros m b L. specialize (lb _ _ L). destruct (Nat.eq_dec m n); subst; sets; auto.
      simpl. destruct (Nat.eq_dec b o); subst; sets; auto.
    + intros m b. destruct (Nat.eq_dec m n); subst; sets; auto.
      simpl. destruct (Nat.eq_dec b o); subst; sets; auto. intros _. rewrite H2. discriminate.
    + intros k E. destruct (ss _ E) as [O A]. split; auto. intros m. destruct (A m) as [L H3]. split; auto.
      destruct (Nat.eq_dec m n); subst; sets; auto.
    + intros k i E m. destruct (cl k i E m) as (L & v & V & Hh & W).
      destruct (Nat.eq_dec m n) as [->|N]; sets; [|split; [exact L|exists v; auto]].
      simpl. split.
      * intros b Lb. assert (b <> o) by congruence. sets. auto.
      * exists v. split; auto. split.
        -- destruct Hh as [Hh|Hh]; [left; exact Hh|right]. intros u b x E'.
           assert (b <> o) by (intros ->; eapply NW; eauto). sets. eauto.
        -- intros u b x E'. assert (b <> o) by (intros ->; eapply NW; eauto). sets. eauto.
  - (* Post *)
    assert (SAME : forall n, exists w, w = match x n with Some a => send (fence p n) (horizon_key a) | None => fence p n end /\
      Fence.reached w /\ now_at w = now_at (fence p n) /\ written w = written (fence p n) /\ owners w = owners (fence p n) /\
      forall y, sent (fence p n) y -> sent w y).
    { intros n. eexists. split; [reflexivity|]. destruct (x n) as [a|] eqn:E; [|repeat split; auto].
      repeat split; auto; [|simpl; auto]. eapply Fence.Next; [apply fs|apply may_send_step; eauto]. }
    split; simpl; auto.
    + intros n. destruct (SAME n) as (w & <- & R & _). auto.
    + intros y n a [P| ->] X.
      * destruct (SAME n) as (w & <- & R & _ & _ & _ & M). eauto.
      * rewrite X. simpl. auto.
    + intros n o L. destruct (SAME n) as (w & <- & R & _ & _ & -> & M). auto.
    + intros n o. destruct (SAME n) as (w & <- & R & _ & _ & -> & M). auto.
    + intros h E. destruct (ss _ E) as [O A]. split; auto. intros n. destruct (A n).
      destruct (SAME n) as (w & <- & R & N & W & _). unfold horizon_at in *. rewrite N, W. auto.
    + intros g h E n. specialize (cl g h E n).
      destruct (SAME n) as (w & <- & R & N & W & _). unfold horizon_at in *. rewrite N, W. auto.
  - (* Commit *)
    assert (OLD : forall n a v, x n = Some a -> v <= now_at (fence p n) ->
      written (apply (fence p n) (horizon_key a)) v = written (fence p n) v).
    { intros n a v E L. simpl. rewrite set_other; auto. lia. }
    assert (BEG : forall n a, x n = Some a -> began (owners (fence p n) (writer (horizon_key a))) = true).
    { intros n a E. apply (sent_sound _ (reached_sound _ (fs n)) _ (ps _ _ _ H E)). }
    split; simpl; auto.
    + intros n. destruct (x n) as [a|] eqn:E; auto.
      eapply Fence.Next; [apply fs|]. apply Apply; [eauto|]. apply (H0 _ _ E).
    + intros y n a P Y. specialize (ps _ _ _ P Y). destruct (x n) eqn:E; auto.
    + intros n o L. destruct (x n) as [a|] eqn:E; auto. simpl. unfold live_after in L.
      specialize (BEG _ _ E). destruct (live_key a); [inversion L; subst; auto|auto|discriminate].
    + intros n o B. apply uo. destruct (x n) eqn:E; auto.
    + intros h E. destruct (ss _ E) as [O A]. split; auto. intros n. destruct (A n) as [L Hh].
      destruct (x n) as [a|] eqn:X; auto. exfalso. destruct (H0 _ _ X) as [_ C]. specialize (BEG _ _ X). apply uo in BEG.
      destruct (live_key a); [destruct C as [_ C]|..]; congruence.
    + intros g h E n. destruct (cl g h E n) as (L & v & V & Hh & W). destruct (x n) as [a|] eqn:X; [|split; eauto].
      specialize (BEG _ _ X). pose proof (H0 _ _ X) as [_ C].
      assert (G : g <= under p n (writer (horizon_key a))).
      { destruct (live_key a); auto. destruct C as [_ C]. rewrite <- C.
        destruct (le_lt_dec g (guard p)) as [|Lt]; auto. apply no in Lt. congruence. }
      assert (NEW : forall u o y, written (apply (fence p n) (horizon_key a)) u = Some (o, y) ->
        written (fence p n) u = Some (o, y) \/ o = writer (horizon_key a)).
      { intros u o y. simpl. destruct (Nat.eq_dec u (S (now_at (fence p n)))); subst; sets; auto.
        intros Eq. inversion Eq. auto. }
      split.
      * intros o Lo. unfold live_after in Lo. destruct (live_key a); [inversion Lo; subst; auto|auto|discriminate].
      * exists v. simpl now_at. split; [lia|]. split.
        -- destruct Hh as [Hh|Hh]; [left|right].
           ++ unfold horizon_at in *. rewrite OLD; auto.
           ++ intros u o y Y. destruct (NEW _ _ _ Y) as [Y'| ->]; eauto.
        -- intros u o y Y Lt. destruct (NEW _ _ _ Y) as [Y'| ->]; [eauto|lia].
  - (* Learns *) apply at_node_sound; auto.
    + eapply Fence.Next; [apply fs|apply Learn; auto].
    + intros b. simpl. destruct (Nat.eq_dec b o); subst; sets; auto.
  - (* Uses *) apply at_node_sound; auto.
    eapply Fence.Next; [apply fs|apply Use; auto].
  - (* Stops *) apply at_node_sound; auto.
    + eapply Fence.Next; [apply fs|apply Stop; auto].
    + intros b. simpl. destruct (Nat.eq_dec b o); subst; sets; auto.
  - (* Free *)
    assert (L : forall m o, set (live p) n None m = Some o -> live p m = Some o).
    { intros m o. destruct (Nat.eq_dec m n); subst; sets; auto; discriminate. }
    split; simpl; auto.
    + intros h E. destruct (ss _ E) as [O A]. split; auto. intros m. destruct (A m). split; auto.
      destruct (set (live p) n None m) eqn:Q; auto. apply L in Q. congruence.
    + intros g h E m. destruct (cl g h E m) as (Lm & rest). split; auto.
  - (* Close *)
    assert (O : forall g, opened p g <> None -> set (opened p) (S (guard p)) None g = opened p g).
    { intros g N. destruct (Nat.eq_dec g (S (guard p))); subst; sets; auto.
      exfalso. apply N. apply no. lia. }
    split; simpl; auto; try discriminate.
    + intros m o B. specialize (uo _ _ B). rewrite O; auto.
    + intros g L. rewrite set_other by lia. apply no. lia.
    + intros g h E. destruct (Nat.eq_dec g (S (guard p))); subst; sets_in E; auto; discriminate.
  - (* Look *)
    split; simpl; auto. intros k E. inversion E; subst. auto.
  - (* Open *)
    assert (O : forall g, opened p g <> None -> g <= guard p /\ set (opened p) (S (guard p)) (Some h) g = opened p g).
    { intros g N. destruct (le_lt_dec g (guard p)) as [|Lt]; [|exfalso; auto]. rewrite set_other by lia. auto. }
    split; simpl; auto; try discriminate.
    + intros m o B. specialize (uo _ _ B). destruct (O _ uo) as [_ ->]. auto.
    + intros g L. rewrite set_other by lia. apply no. lia.
    + intros g k E m. destruct (Nat.eq_dec g (S (guard p))) as [->|N]; [|rewrite set_other in E; auto].
      rewrite set_same in E. inversion E; subst k. destruct H0 as [Sn|None].
      * destruct (ss _ Sn) as [_ A]. destruct (A m) as [L Hh]. split; [intros o Lo; congruence|].
        exists (now_at (fence p m)). split; auto. split; auto.
        intros u o y Y _. apply (versions _ (reached_sound _ (fs m))) in Y. lia.
      * assert (NB : forall o, began (owners (fence p m) o) <> true) by (intros o B; apply uo in B; auto).
        split; [intros o Lo; apply lb in Lo; exfalso; eapply NB; eauto|].
        exists (now_at (fence p m)). split; auto.
        assert (NW : forall u o y, written (fence p m) u <> Some (o, y)) by
          (intros u o y Y; apply writer_began in Y; auto; eapply NB; eauto).
        split; [right|]; intros u o y Y; exfalso; eapply NW; eauto.
Qed.

Lemma reached_sound p : reached p -> sound p.
Proof. induction 1; [apply start_sound|eapply step_sound; eauto]. Qed.

(* ===== The theorems ===== *)

(* Each node ID is as in Fence.v, whatever others it shares transactions with. *)
Theorem each_node_is_fenced p : reached p -> forall n, Fence.reached (fence p n).
Proof. intros R. apply (fences p (reached_sound p R)). Qed.

(* So no instant of a node ID has two owners, of one generation or of several. *)
Theorem no_instant_of_a_node_has_two_owners p : reached p ->
  forall n o1 o2 t, used (fence p n) o1 t -> used (fence p n) o2 t -> o1 = o2.
Proof. intros R n. apply no_instant_has_two_owners. apply each_node_is_fenced; auto. Qed.

(* Whoever claims under a version of the generation's key knows an instant that all owners of former generations stay
   below for ever, those that are cut off as well. *)
Theorem what_is_closed_stays_closed p : reached p ->
  forall g h, opened p g = Some h ->
  forall n o t, under p n o < g -> used (fence p n) o t -> t < h.
Proof.
  intros R g h E n o t L U. pose proof (reached_sound p R) as I.
  pose proof (Fence.reached_sound _ (fences p I n)) as F.
  destruct (closed p I g h E n) as (_ & v & V & Hh & W).
  destruct (used_sound _ F _ _ U) as (_ & _ & _ & u & y & Y & T).
  assert (u <= v) by (eapply W; eauto).
  destruct Hh as [Hh|Hh]; [|specialize (Hh _ _ _ Y); lia].
  assert (t < horizon_at (fence p n) v) by (eapply used_lies_below_later_horizons; eauto). lia.
Qed.
