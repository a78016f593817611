(* Copies of a process: only one of them goes on, and what they may repeat was reserved when they parted.

   The memory of a process may be copied at any moment, also while a write of it is in doubt, any number of times, and its
   copies may be copied. A process that is set back to what its memory was is such a copy, too: it was made then, and took
   no step until its original took no more. This is Fence.v with one step more. Three things are assumed besides:

   - Each write bears a stamp that no other write bears (Sends). Copies share what they sent before they parted, and
     nothing that either sends later.
   - A process takes a write for its own only by a stamp that it sent itself (Learns). Fence.v's processes know theirs by
     their names, which copies share. That a copy stops when it finds another's stamp only makes it repeat less.
   - An answer tells a process of its own write, and not of that of its copy, though both may have one connection.

   As in Fence.v only the first part, "The model", and the theorems at the end matter to whoever does not know Coq. *)

From Coq Require Import Arith Lia Bool.
From Firn Require Import Fence.

(* ===== The model ===== *)

Definition stamp := nat.

(* A name is that of a process here. What Fence.v has as the writer of a write is its stamp. *)
Record system := System {
  fence  : world;
  mine   : name -> stamp -> Prop;             (* the stamps that a process remembers to have sent: fresh.Stamps *)
  parted : name -> name -> option instant }.  (* they were one process, and this was reserved when they parted *)

Definition start : system := System Fence.start (fun _ _ => False) (fun _ _ => None).

Definition now (y : system) (w : world) : system := System w (mine y) (parted y).
Definition sends (y : system) (o : name) (x : write) : system :=
  System (send (fence y) x) (fun p s => mine y p s \/ p = o /\ s = writer x) (parted y).

(* Process c is what o is. Whatever is said of c from then on, but for what it uses, was so far said of o. *)
Definition who (o c p : name) : name := if p =? c then o else p.
Definition copy (y : system) (o c : name) (m : instant) : system :=
  let w := fence y in
  System (World (now_at w) (written w) (sent w) (set (owners w) c (owners w o)) (used w))
    (fun p => mine y (who o c p))
    (fun p q => if p =? q then None else if who o c p =? who o c q then Some m else parted y (who o c p) (who o c q)).

Inductive step (y : system) : system -> Prop :=

(* As in Fence.v: fence.Begin. *)
| Reads o f :
    began (owners (fence y) o) = false ->
    horizon_at (fence y) (now_at (fence y)) <= f ->
    step y (now y (read (fence y) o f))

(* fence.Step with Due: Send and Release of Fence.v, under a stamp that is new (fresh.Stamps.Next). *)
| Sends o s h :
    let a := owners (fence y) o in
    began a = true ->
    (if ended a then h = last a else bound a <= h) ->
    (forall x, sent (fence y) x -> writer x <> s) ->
    step y (sends y o (Write s (known a) h))

(* As in Fence.v: store.Store.Commit. *)
| Applies x :
    sent (fence y) x -> expects x = now_at (fence y) ->
    step y (now y (apply (fence y) x))

(* fence.Step with Applied or Seen: the write bears a stamp that the process has sent (fresh.Stamps.Sent). *)
| Learns o s v h :
    mine y o s -> written (fence y) v = Some (s, h) -> known (owners (fence y) o) <= v ->
    step y (now y (learn (fence y) o v h))

(* As in Fence.v: firn.Generator.Next. *)
| Uses o t :
    let a := owners (fence y) o in
    began a = true -> ended a = false -> floor a <= t -> t < bound a ->
    step y (now y (use (fence y) o t))

(* As in Fence.v: fence.Step with Stopped. *)
| Stops o e :
    let a := owners (fence y) o in
    began a = true -> ended a = false ->
    floor a <= e -> (forall t, used (fence y) o t -> t < e) ->
    step y (now y (stop (fence y) o e))

(* fence.Fence.Clone: process o is copied, and the copy is called c. At or below m lies what o has reserved, and the horizon
   of each write of it that is in doubt: sent under the version that it knows. *)
| Copies o c m :
    let a := owners (fence y) o in
    began a = true -> began (owners (fence y) c) = false ->
    bound a <= m ->
    (forall x, sent (fence y) x -> mine y o (writer x) -> expects x = known a -> horizon x <= m) ->
    step y (copy y o c m).

Inductive reached : system -> Prop :=
| Start : reached start
| Next y y' : reached y -> step y y' -> reached y'.

(* ===== The proof ===== *)

(* A process holds a version if it, or its original before they parted, sent the write. *)
Definition holds y o v h := exists s, written (fence y) v = Some (s, h) /\ mine y o s.
(* A write that was applied, or still can be. *)
Definition alive w x := expects x = now_at w \/ written w (S (expects x)) = Some (writer x, horizon x).

(* What is true in each system: much as in Fence.v, said of what a process holds. *)
Record sound (y : system) : Prop := {
  versions : forall v s h, written (fence y) v = Some (s, h) ->
    1 <= v <= now_at (fence y) /\ sent (fence y) (Write s (pred v) h);
  no_gaps : forall v, 1 <= v <= now_at (fence y) -> exists o h, holds y o v h;
  mine_sound : forall o s, mine y o s -> exists x, sent (fence y) x /\ writer x = s;
  owner_sound : forall o, let a := owners (fence y) o in began a = true ->
    base a <= known a <= now_at (fence y) /\ horizon_at (fence y) (base a) <= floor a <= bound a /\
    (known a = base a \/ exists h, holds y o (known a) h) /\
    (forall v h, holds y o v h -> v <= known a -> h <= bound a) /\
    (bound a = floor a \/ exists v, holds y o v (bound a)) /\
    (ended a = true -> floor a <= last a);
  sent_sound : forall x, sent (fence y) x -> (exists o, mine y o (writer x)) /\
    forall o, mine y o (writer x) -> let a := owners (fence y) o in
    began a = true /\ floor a <= horizon x /\ base a <= expects x <= known a /\
    (expects x = base a \/ exists h, holds y o (expects x) h) /\
    (horizon_at (fence y) (expects x) <= horizon x \/ (ended a = true /\ horizon x = last a));
  used_sound : forall o t, used (fence y) o t -> let a := owners (fence y) o in
    began a = true /\ floor a <= t < bound a /\ (ended a = true -> t < last a);
  (* Copies have one base and floor, and have in common only what was reserved when they parted. *)
  parted_sound : forall o p m, parted y o p = Some m -> let a := owners (fence y) o in let b := owners (fence y) p in
    o <> p /\ began a = true /\ began b = true /\ base a = base b /\ floor a = floor b /\ floor a <= m;
  common : forall x o p, sent (fence y) x -> mine y o (writer x) -> mine y p (writer x) -> o <> p ->
    exists m, parted y o p = Some m /\ (alive (fence y) x -> horizon x <= m) }.

Lemma start_sound : sound start.
Proof. split; simpl; try discriminate; try tauto; intros; lia. Qed.

Lemma step_sound y y' : sound y -> step y y' -> sound y'.
Proof.
  intros I T. assert (NA : written (fence y) (S (now_at (fence y))) = None).
  { destruct (written (fence y) (S (now_at (fence y)))) as [[s h]|] eqn:E; auto. apply (versions y I) in E. lia. }
  destruct I as [v1 g1 m1 o1 s1 u1 p1 c1].
  destruct T; unfold now, sends, read, send, apply, learn, use, stop, holds, alive, horizon_at in *.
  - (* Reads *)
    assert (NM : forall s, ~ mine y o s).
    { intros s M. destruct (m1 _ _ M) as (x & P & <-). destruct (s1 _ P) as [_ Q]. destruct (Q _ M). congruence. }
    split; simpl; unfold holds, alive, horizon_at in *; simpl; auto.
    + intros p. cases; simpl; [|apply o1]. intros _. repeat split; auto; try lia.
      intros v h (s & _ & M). destruct (NM _ M).
    + intros x P. destruct (s1 _ P) as [Ex Q]. split; auto. intros p M. cases; [destruct (NM _ M)|apply Q; auto].
    + intros p t U. pose proof (u1 _ _ U) as G. cases; [destruct G; congruence|exact G].
    + intros p q m E. destruct (p1 _ _ _ E) as (N & B & B' & R). cases; try congruence. repeat split; auto; apply R.
  - (* Sends *)
    assert (NM : forall p, ~ mine y p s).
    { intros p M. destruct (m1 _ _ M) as (x & P & E). apply (H1 _ P E). }
    assert (NW : forall v h', written (fence y) v <> Some (s, h')).
    { intros v h' E. destruct (v1 _ _ _ E) as [_ P]. apply (H1 _ P eq_refl). }
    assert (OLD : forall p v h', (exists s', written (fence y) v = Some (s', h') /\ (mine y p s' \/ p = o /\ s' = s)) <->
                            exists s', written (fence y) v = Some (s', h') /\ mine y p s').
    { intros p v h'. split; intros (s' & E & M); exists s'; split; auto.
      destruct M as [M|[_ ->]]; auto. destruct (NW _ _ E). }
    split; simpl; unfold holds, alive, horizon_at in *; simpl; auto.
    + intros v s' h' E. destruct (v1 _ _ _ E). auto.
    + intros v L. destruct (g1 _ L) as (p & h' & Hp). exists p, h'. apply OLD; auto.
    + intros p s' [M|[-> ->]].
      * destruct (m1 _ _ M) as (x & P & E). exists x; auto.
      * eexists; split; [right; reflexivity|reflexivity].
    + intros p B. destruct (o1 _ B) as (K & F & Kn & Hb & Cf & En). repeat split; auto; try lia.
      * destruct Kn as [|[h' Kn]]; auto. right. exists h'. apply OLD; auto.
      * intros v h' Hp. apply OLD in Hp. eauto.
      * destruct Cf as [|[v Cf]]; auto. right. exists v. apply OLD; auto.
    + intros x [P| ->].
      * destruct (s1 _ P) as [[p Mp] Q]. split; [exists p; auto|]. intros q [M|[-> E]]; [|destruct (H1 _ P E)].
        destruct (Q _ M) as (B & F & R & Kn & Mo). repeat split; auto; try lia.
        destruct Kn as [|[h' Kn]]; auto. right. exists h'. apply OLD; auto.
      * simpl. split; [exists o; auto|]. intros q [M|[-> _]]; [destruct (NM _ M)|].
        destruct (o1 _ H) as (K & F & Kn & Hb & Cf & En).
        assert (HK : match written (fence y) (known a) with Some (_, h0) => h0 | None => 0 end <= bound a).
        { fold a in K, F, Kn, Hb. destruct Kn as [Kn|[h' (s' & E & M)]].
          - rewrite Kn. exact (Nat.le_trans _ _ _ (proj1 F) (proj2 F)).
          - rewrite E. apply (Hb (known a)); eauto. }
        fold a in K, F, Kn, Hb, Cf, En. cbv zeta. fold a. repeat split; auto; try lia.
        -- destruct (ended a); [rewrite H0; auto|lia].
        -- destruct Kn as [|[h' Kn]]; auto. right. exists h'. apply OLD; auto.
        -- destruct (ended a); [auto|left; exact (Nat.le_trans _ _ _ HK H0)].
    + intros x p q P Mp Mq N.
      destruct P as [P| ->].
      * destruct Mp as [Mp|[-> E]]; [|destruct (H1 _ P E)]. destruct Mq as [Mq|[-> E]]; [|destruct (H1 _ P E)]. eauto.
      * destruct Mp as [Mp|[-> _]]; [destruct (NM _ Mp)|]. destruct Mq as [Mq|[-> _]]; [destruct (NM _ Mq)|congruence].
  - (* Applies *)
    pose (W := set (written (fence y)) (S (now_at (fence y))) (Some (writer x, horizon x))).
    assert (OLD : forall v, v <= now_at (fence y) -> W v = written (fence y) v).
    { intros v L. unfold W. cases; auto. lia. }
    assert (SPLIT : forall v s h, W v = Some (s, h) ->
      written (fence y) v = Some (s, h) \/ v = S (now_at (fence y)) /\ s = writer x /\ h = horizon x).
    { intros v s h E. unfold W in E. cases; auto. inversion E; auto. }
    assert (KEEP : forall p v h, (exists s, written (fence y) v = Some (s, h) /\ mine y p s) ->
      exists s, W v = Some (s, h) /\ mine y p s).
    { intros p v h (s & E & M). exists s. split; auto. rewrite OLD; auto. apply v1 in E. lia. }
    destruct (s1 _ H) as [[w Mw] Q].
    split; simpl; unfold holds, alive, horizon_at in *; simpl; fold W; auto.
    + intros v s h E. destruct (SPLIT _ _ _ E) as [E'|(-> & -> & ->)].
      * destruct (v1 _ _ _ E'). split; auto; lia.
      * split; [lia|]. destruct x; simpl in *; subst; auto.
    + intros v L. destruct (Nat.eq_dec v (S (now_at (fence y)))) as [->|N].
      * exists w, (horizon x), (writer x). split; auto. unfold W, set. rewrite Nat.eqb_refl. auto.
      * destruct (g1 v) as (p & h & Hp); [lia|]. eauto.
    + intros p B. destruct (o1 _ B) as (K & F & Kn & Hb & Cf & En). rewrite OLD by lia.
      repeat split; auto; try lia.
      * destruct Kn as [|[h Kn]]; eauto.
      * intros v h (s & E & M) L. rewrite OLD in E by lia. eauto.
      * destruct Cf as [|[v Cf]]; eauto.
    + intros z P. destruct (s1 _ P) as [Ex Qz]. split; auto. intros p M.
      destruct (Qz _ M) as (B & F & R & Kn & Mo). destruct (o1 _ B) as (K & _).
      rewrite OLD by lia. repeat split; auto; lia.
    + intros z p q P Mp Mq N. destruct (c1 _ _ _ P Mp Mq N) as (m & E & A). exists m. split; auto.
      intros Al. apply A. destruct (s1 _ P) as [_ Qz]. destruct (Qz _ Mp) as (B & _ & R & _). destruct (o1 _ B) as (K & _).
      destruct Al as [Al|Al]; [lia|]. destruct (SPLIT _ _ _ Al) as [|(E' & _)]; auto.
  - (* Learns *)
    destruct (v1 _ _ _ H0) as [L P]. destruct (s1 _ P) as [_ Q]. destruct (Q _ H) as (B & F & R & Kn & Mo). simpl in *.
    split; simpl; unfold holds, alive, horizon_at in *; simpl; auto.
    + intros p. cases; simpl; [|apply o1]. intros _. destruct (o1 _ B) as (K & Fb & _ & Hb & Cf & En).
      repeat split; auto; try lia.
      * right; eauto.
      * intros v' h' (s' & E & M) L'. destruct (v1 _ _ _ E) as [L2 P']. destruct (s1 _ P') as [_ Q'].
        destruct (Q' _ M) as (_ & _ & R' & _). simpl in R'.
        destruct (le_lt_dec v' (known (owners (fence y) o))) as [Le|Lt].
        -- specialize (Hb v' h'). lapply Hb; [|eauto]. intros. lia.
        -- assert (v' = v) by lia. subst. rewrite H0 in E. inversion E. lia.
      * destruct (Nat.max_spec (bound (owners (fence y) o)) h) as [[Lt ->]|[Le ->]]; [right; eauto|auto].
    + intros x Px. destruct (s1 _ Px) as [Ex Qx]. split; auto. intros p M. pose proof (Qx _ M) as (B' & F' & R' & Kn' & Mo').
      cases; simpl; repeat split; auto; lia.
    + intros p t U. pose proof (u1 _ _ U) as G. cases; simpl; auto. repeat split; try apply G. destruct G. lia.
    + intros p q m E. pose proof (p1 _ _ _ E) as G. cases; simpl; auto.
  - (* Uses *)
    split; simpl; unfold holds, alive, horizon_at in *; simpl; auto.
    intros p t' [U|[-> ->]]; [apply u1; auto|]. fold a. repeat split; auto. congruence.
  - (* Stops *)
    split; simpl; unfold holds, alive, horizon_at in *; simpl; auto.
    + intros p. pose proof (o1 p) as G. cases; simpl; auto. intros _. destruct (G H) as (G1 & G2 & G3 & G4 & G5 & _).
      repeat split; auto; apply G1 || apply G2.
    + intros x P. destruct (s1 _ P) as [Ex Q]. split; auto. intros p M. pose proof (Q _ M) as (B & F & R & Kn & Mo).
      cases; simpl; repeat split; auto; try lia. destruct Mo as [?|[? ?]]; auto. unfold a in *. congruence.
    + intros p t U. pose proof (u1 _ _ U) as G. cases; simpl; auto. destruct G as (G1 & G2 & _). auto.
    + intros p q m E. pose proof (p1 _ _ _ E) as G. cases; simpl; auto.
  - (* Copies *)
    assert (OC : forall p, set (owners (fence y)) c (owners (fence y) o) p = owners (fence y) (who o c p)).
    { intros p. unfold set, who. destruct (Nat.eqb p c); auto. }
    assert (OLD : forall p, began (owners (fence y) p) = true -> who o c p = p).
    { intros p B. unfold who. destruct (Nat.eqb_spec p c); congruence. }
    assert (ONE : forall p q, p <> q -> who o c p = who o c q -> who o c p = o).
    { intros p q N. unfold who. destruct (Nat.eqb_spec p c), (Nat.eqb_spec q c); congruence. }
    split; simpl; unfold holds, alive, horizon_at; simpl; auto.
    + intros v L. destruct (g1 _ L) as (p & h & s & E & M). destruct (v1 _ _ _ E) as [_ P]. destruct (s1 _ P) as [_ Q].
      exists p, h, s. rewrite OLD; auto. apply (Q _ M).
    + intros p s M. eauto.
    + intros p. rewrite OC. apply o1.
    + intros x P. destruct (s1 _ P) as [[p M] Q]. split.
      * exists p. rewrite OLD; auto. apply (Q _ M).
      * intros q. rewrite OC. apply Q.
    + intros p t U. destruct (u1 _ _ U). rewrite OC, OLD; auto.
    + intros p q k. rewrite !OC. destruct (Nat.eqb_spec p q) as [|N]; [discriminate|].
      destruct (Nat.eqb_spec (who o c p) (who o c q)) as [E|N'].
      * intros G. inversion G; subst. rewrite <- E, (ONE _ _ N E). destruct (o1 _ H) as (_ & F & _).
        repeat split; auto. exact (Nat.le_trans _ _ _ (proj2 F) H1).
      * intros G. destruct (p1 _ _ _ G) as (_ & R). auto.
    + intros x p q P Mp Mq N. destruct (Nat.eqb_spec p q); [congruence|].
      destruct (Nat.eqb_spec (who o c p) (who o c q)) as [E|N']; [|apply c1; auto].
      exists m. split; auto. rewrite (ONE _ _ N E) in Mp. intros Al. destruct (s1 _ P) as [_ Q].
      destruct (Q _ Mp) as (_ & _ & R & _). destruct (o1 _ H) as (K & _ & _ & Hb & _). fold a in K, Hb, R.
      destruct (Nat.eq_dec (expects x) (known a)); [auto|]. destruct Al as [Al|Al]; [lia|].
      specialize (Hb _ _ (ex_intro _ _ (conj Al Mp))). lia.
Qed.

Lemma reached_sound y : reached y -> sound y.
Proof. induction 1; [apply start_sound|eapply step_sound; eauto]. Qed.

(* The versions of a process are one stretch, which begins right after the one that it, or its original, read. *)
Lemma processes_write_in_one_stretch y (I : sound y) o v h :
  holds y o v h -> forall u, base (owners (fence y) o) < u <= v -> exists h', holds y o u h'.
Proof.
  revert h. induction v as [|v IH]; intros h (s & E & M) u L; [lia|].
  destruct (Nat.eq_dec u (S v)) as [->|N]; [exists h, s; auto|].
  destruct (versions y I _ _ _ E) as [_ P]. destruct (sent_sound y I _ P) as [_ Q].
  destruct (Q _ M) as (_ & _ & _ & [K|[h' K]] & _); simpl in K; [lia|]. apply (IH h'); auto. lia.
Qed.

Lemma what_is_held_comes_after_the_base y (I : sound y) o v h : holds y o v h -> base (owners (fence y) o) < v.
Proof.
  intros (s & E & M). destruct (versions y I _ _ _ E) as [L P]. destruct (sent_sound y I _ P) as [_ Q].
  destruct (Q _ M) as (_ & _ & R & _). simpl in R. lia.
Qed.

(* A version that two processes hold was reserved, or being reserved, when they parted. *)
Lemma what_both_hold_was_reserved y (I : sound y) o p v h h' :
  holds y o v h -> holds y p v h' -> o <> p -> exists m, parted y o p = Some m /\ h <= m /\ h' <= m.
Proof.
  intros (s & E & M) (s' & E' & M') N. rewrite E in E'. inversion E'; subst.
  destruct (versions y I _ _ _ E) as [L P]. destruct (common y I _ o p P M M' N) as (m & Q & A).
  exists m. assert (h' <= m); auto. apply A. right. simpl. replace (S (pred v)) with v by lia. auto.
Qed.

(* Process o, or p, was copied, and its copies may both use t. *)
Definition at_risk y o t := exists p m, o <> p /\ parted y o p = Some m /\ t < m.

Lemma used_lies_below_later_horizons y (I : sound y) o t v0 h0 :
  used (fence y) o t -> holds y o v0 h0 -> t < h0 ->
  forall v, v0 <= v <= now_at (fence y) -> t < horizon_at (fence y) v \/ at_risk y o t.
Proof.
  intros U H0 L0.
  assert (G : forall n v, v = v0 + n -> v <= now_at (fence y) -> t < horizon_at (fence y) v \/ at_risk y o t).
  2: { intros v L. apply (G (v - v0)); lia. }
  induction n as [n IH] using lt_wf_ind. intros v -> Lw. unfold horizon_at at 1.
  destruct n as [|n].
  { rewrite Nat.add_0_r. destruct H0 as (s & E & _). rewrite E. auto. }
  destruct (no_gaps y I (v0 + S n)) as (p & h & Hp); [lia|]. pose proof Hp as (s & E & M). rewrite E.
  destruct (versions y I _ _ _ E) as [_ P]. destruct (sent_sound y I _ P) as [_ Q].
  destruct (Q _ M) as (B & F & R & _ & Mo). simpl in *.
  destruct (Nat.eq_dec o p) as [<-|N].
  - replace (pred (v0 + S n)) with (v0 + n) in * by lia. destruct Mo as [Mo|[En ->]].
    + destruct (IH n ltac:(lia) (v0 + n) eq_refl ltac:(lia)) as [|]; auto. left. lia.
    + left. apply (used_sound y I _ _ U). auto.
  - destruct (owner_sound y I _ B) as (K & Fl & _).
    destruct (le_lt_dec v0 (base (owners (fence y) p))) as [Le|Lt].
    + destruct (IH (base (owners (fence y) p) - v0) ltac:(lia) (base (owners (fence y) p))) as [|]; auto; lia.
    + destruct (processes_write_in_one_stretch y I _ _ _ Hp v0) as [h' H']; [lia|].
      destruct (what_both_hold_was_reserved y I _ _ _ _ _ H0 H' N) as (m & E' & L & _). right.
      exists p, m. repeat split; auto. lia.
Qed.

(* What a process may use, or has used, lies below a horizon that it holds. *)
Lemma bounds_are_confirmed y (I : sound y) o t :
  began (owners (fence y) o) = true -> floor (owners (fence y) o) <= t < bound (owners (fence y) o) ->
  exists v, holds y o v (bound (owners (fence y) o)).
Proof. intros B L. destruct (owner_sound y I _ B) as (_ & _ & _ & _ & [C|C] & _); [lia|auto]. Qed.

(* ===== The theorems ===== *)

(* Of two processes that were one, at most one ever gets beyond what was reserved when they parted. *)
Theorem one_copy_goes_on y : reached y -> forall o p m, parted y o p = Some m ->
  bound (owners (fence y) o) <= m \/ bound (owners (fence y) p) <= m.
Proof.
  intros R o p m E. pose proof (reached_sound y R) as I.
  destruct (parted_sound y I _ _ _ E) as (N & B & B' & Ba & Fl & L).
  destruct (le_lt_dec (bound (owners (fence y) o)) m) as [|L1]; auto.
  destruct (le_lt_dec (bound (owners (fence y) p)) m) as [|L2]; auto. exfalso.
  destruct (bounds_are_confirmed y I o m B) as [v H]; [lia|].
  destruct (bounds_are_confirmed y I p m B') as [v' H']; [lia|].
  pose proof (what_is_held_comes_after_the_base y I _ _ _ H). pose proof (what_is_held_comes_after_the_base y I _ _ _ H').
  destruct (le_lt_dec v v') as [Le|Lt].
  - destruct (processes_write_in_one_stretch y I _ _ _ H' v) as [h Hv]; [lia|].
    destruct (what_both_hold_was_reserved y I _ _ _ _ _ H Hv N) as (m' & E' & ?). rewrite E in E'. inversion E'. lia.
  - destruct (processes_write_in_one_stretch y I _ _ _ H v') as [h Hv]; [lia|].
    destruct (what_both_hold_was_reserved y I _ _ _ _ _ Hv H' N) as (m' & E' & ?). rewrite E in E'. inversion E'. lia.
Qed.

(* So what both used was reserved then. *)
Theorem copies_repeat_what_was_reserved y : reached y -> forall o p m t, parted y o p = Some m ->
  used (fence y) o t -> used (fence y) p t -> t < m.
Proof.
  intros R o p m t E U U'. pose proof (reached_sound y R) as I.
  destruct (used_sound y I _ _ U) as (_ & L & _). destruct (used_sound y I _ _ U') as (_ & L' & _).
  destruct (one_copy_goes_on y R _ _ _ E); lia.
Qed.

(* Whatever two processes have used, copies or not: what they have used both was reserved when one of the two was copied, and
   if neither ever was, there is none. *)
Theorem only_what_was_reserved_comes_twice y : reached y -> forall o p t, used (fence y) o t -> used (fence y) p t ->
  o = p \/ at_risk y o t \/ at_risk y p t.
Proof.
  intros R. pose proof (reached_sound y R) as I.
  assert (H : forall o p t v v' h h', used (fence y) o t -> used (fence y) p t -> holds y o v h -> holds y p v' h' ->
    t < h -> v <= v' -> o = p \/ at_risk y o t).
  { intros o p t v v' h h' U U' Ho Hp L Le. destruct (Nat.eq_dec o p) as [|N]; auto. right.
    destruct (used_sound y I _ _ U') as (B & F & _). destruct (owner_sound y I _ B) as (K & Fl & _).
    destruct (le_lt_dec v (base (owners (fence y) p))) as [Lb|Lb].
    - destruct (used_lies_below_later_horizons y I o t v h U Ho L (base (owners (fence y) p))) as [|]; auto; lia.
    - destruct (processes_write_in_one_stretch y I _ _ _ Hp v) as [h2 H2]; [lia|].
      destruct (what_both_hold_was_reserved y I _ _ _ _ _ Ho H2 N) as (m & E & Lm & _).
      exists p, m. repeat split; auto. lia. }
  intros o p t U U'.
  destruct (used_sound y I _ _ U) as (B & L & _). destruct (used_sound y I _ _ U') as (B' & L' & _).
  destruct (bounds_are_confirmed y I _ _ B L) as [v Hv]. destruct (bounds_are_confirmed y I _ _ B' L') as [v' Hv'].
  destruct (le_lt_dec v v') as [Le|Lt].
  - destruct (H o p t v v' _ _ U U' Hv Hv'); auto; lia.
  - destruct (H p o t v' v _ _ U' U Hv' Hv); auto; lia.
Qed.

(* The model is not empty, and no smaller m would do: a process has reserved up to 10, and is copied while a write up to 20
   is in doubt. Both use 15, and one of them goes on and uses 25. *)
Theorem copies_part : exists y, reached y /\ parted y 1 2 = Some 20 /\
  used (fence y) 1 15 /\ used (fence y) 2 15 /\ used (fence y) 2 25.
Proof.
  pose (reads := fun y o => now y (read (fence y) o 0)).
  pose (applies := fun y x => now y (apply (fence y) x)).
  pose (learns := fun y o v h => now y (learn (fence y) o v h)).
  pose (uses := fun y o t => now y (use (fence y) o t)).
  pose (claimed := learns (applies (sends (reads start 1) 1 (Write 101 0 10)) (Write 101 0 10)) 1 1 10).
  pose (copied := copy (sends claimed 1 (Write 102 1 20)) 1 2 20).
  pose (both := uses (uses (learns (learns (applies copied (Write 102 1 20)) 1 2 20) 2 2 20) 1 15) 2 15).
  exists (uses (learns (applies (sends both 2 (Write 103 2 30)) (Write 103 2 30)) 2 3 30) 2 25).
  split; [|repeat split; cbn; auto].
  eapply Next; [|apply Uses; cbn; auto; lia].
  eapply Next; [|apply (Learns _ 2 103); cbn; auto].
  eapply Next; [|apply Applies; cbn; auto].
  eapply Next; [|apply (Sends both 2 103 30); cbn; auto; [lia|intros x H E; intuition (subst; discriminate)]].
  do 2 (eapply Next; [|apply Uses; cbn; auto; lia]).
  do 2 (eapply Next; [|eapply (Learns _ _ 102); cbn; auto]).
  eapply Next; [|apply Applies; cbn; auto].
  eapply Next; [|apply Copies; cbn; auto; [lia|intros x H _ _; intuition (subst; cbn; lia)]].
  eapply Next; [|apply (Sends claimed 1 102 20); cbn; auto; [lia|intros x H E; intuition (subst; discriminate)]].
  eapply Next; [|apply (Learns _ 1 101); cbn; auto].
  eapply Next; [|apply Applies; cbn; auto].
  eapply Next; [|apply (Sends (reads start 1) 1 101 10); cbn; auto; lia].
  eapply Next; [apply Start|apply Reads; cbn; auto].
Qed.
