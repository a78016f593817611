(* The IDs of a sequencer's name: no ID is ever given twice.

   This puts the other files together: the node IDs of a name (Prefix.v, over Fence.v), a generator for each owner
   (Word.v), and what both are for: IDs, which are numbers. Each generation of the name has a layout of its own. *)

From Coq Require Import Arith Lia List.
From Firn Require Import Fence Word Prefix.
Import ListNotations.

(* ===== The model ===== *)

(* firn.Layout. *)
Record layout := Layout {
  epoch     : instant;
  tick      : nat;      (* the length of a tick *)
  node_ids  : nat;      (* how many node IDs there are *)
  sequences : nat }.    (* how many places a tick has *)

(* firn.Layout.TickStart: the instant at which a tick begins. *)
Definition begins (l : layout) (k : nat) : instant := epoch l + k * tick l.

(* The ID of a place of a node ID: time, node ID, sequence. *)
Definition id (l : layout) (n : node) (p : place) : nat :=
  (p / sequences l * node_ids l + n) * sequences l + p mod sequences l.

(* Does a limit keep a generator to ticks that end at or before an instant? *)
Definition within (l : layout) (limit : place) (b : instant) : Prop :=
  forall p, p < limit -> begins l (p / sequences l) + tick l <= b.

Record system := System {
  keys    : prefix;                          (* what the store and the owners know *)
  layouts : version -> layout;               (* the layout of each generation *)
  lowest  : version -> nat;                  (* no ID of a generation is smaller: one more than peer.generation.After,
                                                or 0 if that is 0, because there were no IDs before *)
  words   : node -> name -> option word;     (* each owner's generator, if it has one already *)
  ids     : list nat }.                      (* all IDs that were ever taken: each is given once, or never *)

Definition start : system :=
  System Prefix.start (fun _ => Layout 0 1 1 1) (fun _ => 0) (fun _ _ => None) [].

Definition layout_of (s : system) (n : node) (o : name) : layout := layouts s (under (keys s) n o).
Definition owner_of (s : system) (n : node) (o : name) : owner := owners (fence (keys s) n) o.

(* What firn.Generator.Stop returns: the end of the last tick that was used. *)
Definition end_of (l : layout) (w : word) : instant :=
  if final w <=? first w then 0 else begins l ((final w - 1) / sequences l + 1).

Definition with_keys (s : system) (p : prefix) : system := System p (layouts s) (lowest s) (words s) (ids s).
Definition with_word (s : system) (n : node) (o : name) (w : word) : system :=
  System (keys s) (layouts s) (lowest s) (set (words s) n (set (words s n) o (Some w))) (ids s).

(* Does a step of the store leave the generators alone? No owner begins or stops, no ID is made, no generation opens. *)
Definition quiet (p p' : prefix) : Prop :=
  (forall g, opened p' g = opened p g) /\
  forall n o, under p' n o = under p n o /\
    began (owners (fence p' n) o) = began (owners (fence p n) o) /\
    ended (owners (fence p' n) o) = ended (owners (fence p n) o) /\
    floor (owners (fence p' n) o) = floor (owners (fence p n) o) /\
    bound (owners (fence p n) o) <= bound (owners (fence p' n) o) /\
    forall t, used (fence p' n) o t <-> used (fence p n) o t.

Inductive step (s : system) : system -> Prop :=

(* The steps Post, Commit, Learns, Free, Close and Look of Prefix.v, as they are there (store.Store.Commit and so on). The
   lemma store_steps_are_quiet says that all of these are meant. *)
| Stores p :
    Prefix.step (keys s) p -> quiet (keys s) p ->
    step s (with_keys s p)

(* Prefix.v's Open: the new generation has a layout. Its IDs are above where those of the former generations begin, and above
   each that the last of these can have made below the horizon that was read (firn.Layout.Last, in
   peer.generation.closed). *)
| Opens h l a :
    opened (keys s) (guard (keys s)) = None ->
    (seen (keys s) = Some h \/ forall g, opened (keys s) g = None) ->
    1 <= tick l -> 1 <= sequences l ->
    (forall g, opened (keys s) g <> None -> lowest s g <= a) ->
    (forall g, opened (keys s) g <> None -> (forall g', opened (keys s) g' <> None -> g' <= g) ->
      forall n p, n < node_ids (layouts s g) -> begins (layouts s g) (p / sequences (layouts s g)) < h ->
        id (layouts s g) n p < a) ->
    step s (System (turn (keys s) (Some h)) (set (layouts s) (S (guard (keys s))) l)
      (set (lowest s) (S (guard (keys s))) a) (words s) (ids s))

(* Prefix.v's Begin: the floor is so late that no ID from there on is too small (peer.Member.above,
   sequencer.Definition.Above). *)
| Begins n o f g h :
    began (owner_of s n o) = false ->
    horizon_at (fence (keys s) n) (now_at (fence (keys s) n)) <= f ->
    g <= guard (keys s) -> opened (keys s) g = Some h ->
    (forall k, f <= begins (layouts s g) k -> lowest s g <= id (layouts s g) 0 (k * sequences (layouts s g))) ->
    step s (with_keys s (begin (keys s) n o f g))

(* peer.Sequencer.generate: the owner makes its generator, with firn.WithFloor and firn.WithBound. It makes one only. *)
| Makes n o k limit :
    began (owner_of s n o) = true -> ended (owner_of s n o) = false -> words s n o = None ->
    n < node_ids (layout_of s n o) ->
    floor (owner_of s n o) <= begins (layout_of s n o) k ->
    within (layout_of s n o) limit (bound (owner_of s n o)) ->
    step s (with_word s n o (made (sequences (layout_of s n o)) (k * sequences (layout_of s n o)) limit))

(* Steps of Word.v by which no place is taken and no limit moves: Load, Choose, Abandon, Halt (firn.Generator.Stop), and
   Give, since what firn.Local.TryNext gives was taken before. *)
| Prepares n o w w' :
    words s n o = Some w -> Word.step w w' -> taken w' = taken w -> limit w' = limit w ->
    step s (with_word s n o w')

(* peer.Member.extend moves a generator's limit to the horizon that the store has confirmed: firn.Generator.SetBound. *)
| Moves n o w l :
    words s n o = Some w -> limit w <= l -> within (layout_of s n o) l (bound (owner_of s n o)) ->
    step s (with_word s n o (move w l))

(* Word.v's Swap: firn.Generator.Next and its like take IDs for a caller, who gets each at most once. *)
| Gives n o w g word p count :
    words s n o = Some w -> calls w g = Chosen word p count -> next w = Some word ->
    step s (System
      (at_node (keys s) n (use (fence (keys s) n) o (begins (layout_of s n o) (p / sequences (layout_of s n o)))))
      (layouts s) (lowest s)
      (set (words s) n (set (words s n) o (Some (swap w g p count))))
      (map (id (layout_of s n o) n) (seq p count) ++ ids s))

(* fence.Fence.Release: the fence learns where the use ended, once the generator has stopped; or there was none. *)
| Ends n o e :
    began (owner_of s n o) = true -> ended (owner_of s n o) = false ->
    match words s n o with
    | None => e = floor (owner_of s n o)
    | Some w => next w = None /\ e = max (floor (owner_of s n o)) (end_of (layout_of s n o) w)
    end ->
    step s (with_keys s (at_node (keys s) n (stop (fence (keys s) n) o e))).

Inductive reached : system -> Prop :=
| Start : reached start
| Next s s' : reached s -> step s s' -> reached s'.

(* ===== The proof ===== *)

Definition sized (l : layout) : Prop := 1 <= tick l /\ 1 <= sequences l.

Lemma ids_differ l n p n' p' : sized l -> n < node_ids l -> n' < node_ids l ->
  id l n p = id l n' p' -> n = n' /\ p = p'.
Proof.
  intros [_ Q] N N' E. unfold id in E.
  assert (M : p mod sequences l < sequences l) by (apply Nat.mod_upper_bound; lia).
  assert (M' : p' mod sequences l < sequences l) by (apply Nat.mod_upper_bound; lia).
  rewrite (Nat.mul_comm _ (sequences l)), (Nat.mul_comm (_ + n') (sequences l)) in E.
  apply Nat.div_mod_unique in E; auto. destruct E as [E R].
  rewrite (Nat.mul_comm _ (node_ids l)), (Nat.mul_comm (p' / _) (node_ids l)) in E.
  apply Nat.div_mod_unique in E; auto. destruct E as [E T].
  split; auto. rewrite (Nat.div_mod p (sequences l)), (Nat.div_mod p' (sequences l)) by lia. congruence.
Qed.

Lemma first_id_of_tick l n p : sized l -> id l 0 (p / sequences l * sequences l) <= id l n p.
Proof.
  intros [_ Q]. unfold id. rewrite Nat.div_mul, Nat.mod_mul by lia. nia.
Qed.

Record sound (s : system) : Prop := {
  keys_reached : Prefix.reached (keys s);
  layouts_sized : forall g, opened (keys s) g <> None -> sized (layouts s g);
  word_sound : forall n o w, words s n o = Some w ->
    Word.reached w /\ began (owner_of s n o) = true /\ width w = sequences (layout_of s n o) /\
    n < node_ids (layout_of s n o) /\
    floor (owner_of s n o) <= begins (layout_of s n o) (first w / sequences (layout_of s n o)) /\
    within (layout_of s n o) (limit w) (bound (owner_of s n o)) /\
    (ended (owner_of s n o) = true -> next w = None);
  used_is_taken : forall n o t, used (fence (keys s) n) o t ->
    exists w p, words s n o = Some w /\ In p (taken w) /\ t = begins (layout_of s n o) (p / sequences (layout_of s n o));
  taken_is_used : forall n o w p, words s n o = Some w -> In p (taken w) ->
    used (fence (keys s) n) o (begins (layout_of s n o) (p / sequences (layout_of s n o)));
  ids_from : forall x, In x (ids s) ->
    exists n o w p, words s n o = Some w /\ In p (taken w) /\ x = id (layout_of s n o) n p;
  floor_above : forall n o, began (owner_of s n o) = true ->
    forall k, floor (owner_of s n o) <= begins (layout_of s n o) k ->
    lowest s (under (keys s) n o) <= id (layout_of s n o) 0 (k * sequences (layout_of s n o));
  generations : forall g g', opened (keys s) g <> None -> opened (keys s) g' <> None -> g < g' ->
    lowest s g <= lowest s g' /\ exists g1 h1, g < g1 /\ opened (keys s) g1 = Some h1 /\
      forall n p, n < node_ids (layouts s g) -> begins (layouts s g) (p / sequences (layouts s g)) < h1 ->
        id (layouts s g) n p < lowest s g';
  no_id_twice : NoDup (ids s) }.

Lemma start_sound : sound start.
Proof.
  split; simpl; try discriminate; try tauto.
  - apply Prefix.Start.
  - constructor.
Qed.

Lemma word_under_open s n o w : sound s -> words s n o = Some w -> opened (keys s) (under (keys s) n o) <> None.
Proof.
  intros I E. apply (under_opened _ (Prefix.reached_sound _ (keys_reached s I))).
  apply (word_sound s I _ _ _ E).
Qed.

(* Nothing that Prefix.v's other steps do is left out of this model. *)
Lemma store_steps_are_quiet p p' : Prefix.reached p -> Prefix.step p p' ->
  quiet p p' \/ (exists n o f g, p' = begin p n o f g) \/ (exists n o t, p' = at_node p n (use (fence p n) o t)) \/
  (exists n o e, p' = at_node p n (stop (fence p n) o e)) \/ (exists h, p' = turn p (Some h)).
Proof.
  intros R S. pose proof (not_yet_opened _ (Prefix.reached_sound _ R)) as NO. destruct S; eauto 8; left; split; auto.
  - intros n o. simpl. destruct (x n); repeat split; auto.
  - intros n o. simpl. destruct (x n); repeat split; auto.
  - intros m b. simpl. destruct (Nat.eq_dec m n) as [->|]; sets; [|repeat split; auto].
    simpl. destruct (Nat.eq_dec b o) as [->|]; sets; simpl; repeat split; auto; lia.
  - intros m b. repeat split; auto.
  - intros g. simpl. destruct (Nat.eq_dec g (S (guard p))) as [->|]; sets; auto. rewrite NO; auto.
  - intros m b. repeat split; auto.
  - intros m b. repeat split; auto.
Qed.

(* A step after which all owners and generations are as they were, but for bounds that moved ahead. *)
Lemma keys_sound s p : sound s -> Prefix.reached p -> quiet (keys s) p -> sound (with_keys s p).
Proof.
  intros [kr la ws ug gu idf fa ge nd] R [O A].
  assert (LO : forall n o, layout_of (with_keys s p) n o = layout_of s n o).
  { intros n o. unfold layout_of, with_keys. simpl. destruct (A n o) as [-> _]. auto. }
  split; try exact R; try exact nd.
  - intros g. simpl. rewrite O. auto.
  - intros n o w E. rewrite LO. destruct (ws _ _ _ E) as (a & b & c & d & e & f & g).
    unfold owner_of, with_keys in *. simpl. destruct (A n o) as (_ & -> & -> & -> & Bd & _).
    repeat split; auto. intros q Q. specialize (f q Q). lia.
  - intros n o t U. rewrite LO. apply A in U. exact (ug _ _ _ U).
  - intros n o w q E Q. rewrite LO. apply A. exact (gu _ _ _ _ E Q).
  - intros x X. destruct (idf x X) as (n & o & w & q & E & Q & ->). exists n, o, w, q. rewrite LO. auto.
  - intros n o. rewrite LO. unfold owner_of, with_keys in *. simpl. destruct (A n o) as (-> & -> & _ & -> & _). apply fa.
  - intros g g'. simpl. rewrite !O. intros G G' L. destruct (ge g g' G G' L) as (? & g1 & h1 & ? & ? & ?).
    split; auto. exists g1, h1. rewrite O. auto.
Qed.

(* A step of one generator that gives nothing. *)
Lemma with_word_sound s n o w : sound s -> Word.reached w ->
  began (owner_of s n o) = true -> width w = sequences (layout_of s n o) -> n < node_ids (layout_of s n o) ->
  floor (owner_of s n o) <= begins (layout_of s n o) (first w / sequences (layout_of s n o)) ->
  within (layout_of s n o) (limit w) (bound (owner_of s n o)) ->
  (ended (owner_of s n o) = true -> next w = None) ->
  (forall p, In p (taken w) <-> exists w0, words s n o = Some w0 /\ In p (taken w0)) ->
  sound (with_word s n o w).
Proof.
  intros [kr la ws ug gu idf fa ge nd] R Bg Wd Nd Fl Wi En Gi.
  assert (W : forall m b, (m = n /\ b = o /\ words (with_word s n o w) m b = Some w) \/
    words (with_word s n o w) m b = words s m b).
  { intros m b. unfold with_word. simpl. destruct (Nat.eq_dec m n) as [->|]; sets; auto.
    destruct (Nat.eq_dec b o) as [->|]; sets; auto. }
  assert (IN : forall m b w0 q, words s m b = Some w0 -> In q (taken w0) ->
    exists w1, words (with_word s n o w) m b = Some w1 /\ In q (taken w1)).
  { intros m b w0 q E Q. destruct (W m b) as [(-> & -> & E')|E']; [|exists w0; split; congruence].
    exists w. split; auto. apply Gi. eauto. }
  split; auto.
  - intros m b v E. destruct (W m b) as [(-> & -> & E')|E'].
    + replace v with w by congruence. repeat split; auto.
    + apply ws. congruence.
  - intros m b t U. destruct (ug _ _ _ U) as (w0 & q & E & Q & T). destruct (IN _ _ _ _ E Q) as (w1 & E1 & Q1).
    exists w1, q. auto.
  - intros m b v q E Q. destruct (W m b) as [(-> & -> & E')|E'].
    + replace v with w in Q by congruence. apply Gi in Q. destruct Q as (w0 & E0 & Q0). exact (gu _ _ _ _ E0 Q0).
    + apply (gu m b v); congruence.
  - intros x X. destruct (idf x X) as (m & b & w0 & q & E & Q & ->). destruct (IN _ _ _ _ E Q) as (w1 & E1 & Q1).
    exists m, b, w1, q. auto.
Qed.

Lemma word_step_width w w' : Word.step w w' -> width w' = width w /\ first w' = first w /\ (next w = None -> next w' = None).
Proof. intros S. destruct S; simpl; repeat split; auto; congruence. Qed.

Lemma ids_of_a_tick_differ l n p c (old : list nat) : sized l -> n < node_ids l -> NoDup old ->
  (forall q, p <= q < p + c -> ~ In (id l n q) old) -> NoDup (map (id l n) (seq p c) ++ old).
Proof.
  intros Z N D. revert p. induction c as [|c IH]; intros p H; simpl; auto.
  constructor.
  - rewrite in_app_iff, in_map_iff. intros [(q & E & Q)|Q]; [|eapply (H p); auto; lia].
    apply in_seq in Q. apply ids_differ in E; auto. lia.
  - apply IH. intros q Q. apply H. lia.
Qed.

Lemma step_sound s s' : sound s -> step s s' -> sound s'.
Proof.
  intros I S. pose proof I as [kr la ws ug gu idf fa ge nd].
  pose proof (Prefix.reached_sound _ kr) as K.
  destruct S.
  - (* Stores *) apply keys_sound; auto. eapply Prefix.Next; eauto.
  - (* Opens *)
    pose proof (not_yet_opened _ K) as NO.
    assert (OLD : forall g, opened (keys s) g <> None -> g <> S (guard (keys s))).
    { intros g G ->. apply G. apply NO. lia. }
    assert (OP : forall g, set (opened (keys s)) (S (guard (keys s))) (Some h) g <> None ->
      g = S (guard (keys s)) \/ (g <> S (guard (keys s)) /\ opened (keys s) g <> None)).
    { intros g G. destruct (Nat.eq_dec g (S (guard (keys s)))); auto. sets_in G. auto. }
    assert (LO : forall n o, began (owner_of s n o) = true -> under (keys s) n o <> S (guard (keys s))).
    { intros n o B. apply OLD. apply (under_opened _ K). auto. }
    assert (LW : forall n o w, words s n o = Some w -> under (keys s) n o <> S (guard (keys s))).
    { intros n o w E. apply LO. apply (ws _ _ _ E). }
    split; simpl; auto.
    + eapply Prefix.Next; [exact kr|apply Open; auto].
    + intros g G. destruct (OP g G) as [->|[N G']]; sets; [split; auto|auto].
    + intros n o w E. pose proof (LW _ _ _ E). unfold layout_of, owner_of. simpl. sets. apply ws. auto.
    + intros n o t U. destruct (ug _ _ _ U) as (w & q & E & Q & T). pose proof (LW _ _ _ E).
      exists w, q. unfold layout_of. simpl. sets. auto.
    + intros n o w q E Q. pose proof (LW _ _ _ E). unfold layout_of. simpl. sets. exact (gu _ _ _ _ E Q).
    + intros x X. destruct (idf x X) as (n & o & w & q & E & Q & ->). pose proof (LW _ _ _ E).
      exists n, o, w, q. unfold layout_of. simpl. sets. auto.
    + intros n o B. pose proof (LO _ _ B). unfold layout_of, owner_of. simpl. sets. apply fa. auto.
    + intros g g' G G' L. destruct (OP g G) as [->|[N G1]].
      { destruct (OP g' G') as [->|[N' G1']]; [lia|]. exfalso. apply G1'. apply NO. lia. }
      destruct (OP g' G') as [->|[N' G1']]; sets.
      * split; [auto|]. 
        (* the former generation of the new one *)
        assert (LATEST : exists f, g <= f /\ opened (keys s) f <> None /\ forall g', opened (keys s) g' <> None -> g' <= f).
        { assert (B : forall d, (forall g', opened (keys s) g' <> None -> g' <= g + d) ->
            exists f, g <= f /\ opened (keys s) f <> None /\ forall g', opened (keys s) g' <> None -> g' <= f).
          { induction d as [|d IH]; intros B.
            - exists g. repeat split; auto. intros g' X. specialize (B g' X). lia.
            - destruct (opened (keys s) (g + S d)) eqn:X.
              + exists (g + S d). repeat split; [lia|congruence|auto].
              + apply IH. intros g' Y. specialize (B g' Y). destruct (Nat.eq_dec g' (g + S d)); [congruence|lia]. }
          apply (B (guard (keys s))). intros g' X. destruct (le_lt_dec g' (guard (keys s))); [lia|].
          exfalso. apply X. apply NO. auto. }
        destruct LATEST as (f & Lf & Of & Mf).
        destruct (Nat.eq_dec g f) as [->|Ngf].
        -- exists (S (guard (keys s))), h. sets. split; auto.
        -- destruct (ge g f G1 Of ltac:(lia)) as (_ & g1 & h1 & L1 & O1 & B1).
           exists g1, h1. split; auto. assert (g1 <> S (guard (keys s))) by (apply OLD; congruence). sets. split; auto.
           intros n p Nn Bh. specialize (B1 n p Nn Bh). specialize (H3 f Of). lia.
      * destruct (ge g g' G1 G1' L) as (Le & g1 & h1 & L1 & O1 & B1). split; auto.
        exists g1, h1. assert (g1 <> S (guard (keys s))) by (apply OLD; congruence). sets. auto.
  - (* Begins *)
    assert (R : Prefix.reached (begin (keys s) n o f g)) by (eapply Prefix.Next; [exact kr|eapply Begin; eauto]).
    assert (NW : forall w, words s n o <> Some w) by (intros w E; apply ws in E; unfold owner_of in *; intuition congruence).
    set (s' := with_keys s (begin (keys s) n o f g)).
    assert (X : forall m b, (m = n /\ b = o) \/ (owner_of s' m b = owner_of s m b /\ layout_of s' m b = layout_of s m b /\
       under (keys s') m b = under (keys s) m b)).
    { intros m b. destruct (Nat.eq_dec m n) as [->|]; [destruct (Nat.eq_dec b o) as [->|]; auto|]; right;
      unfold s', owner_of, layout_of; simpl; sets; simpl; sets; auto. }
    assert (US : forall m b t, used (fence (keys s') m) b t <-> used (fence (keys s) m) b t).
    { intros m b t. unfold s'. simpl. destruct (Nat.eq_dec m n) as [->|]; sets; simpl; tauto. }
    split; try exact R; try exact nd; try exact la; try exact ge.
    + intros m b w E. destruct (X m b) as [[-> ->]|(-> & -> & _)]; [edestruct NW; eauto|exact (ws _ _ _ E)].
    + intros m b t U. apply US in U. destruct (ug _ _ _ U) as (w & q & E & Q & T).
      destruct (X m b) as [[-> ->]|(_ & -> & _)]; [edestruct NW; eauto|exists w, q; auto].
    + intros m b w q E Q. apply US. destruct (X m b) as [[-> ->]|(_ & -> & _)]; [edestruct NW; eauto|exact (gu _ _ _ _ E Q)].
    + intros x Y. destruct (idf x Y) as (m & b & w & q & E & Q & T).
      destruct (X m b) as [[-> ->]|(_ & EL & _)]; [edestruct NW; eauto|]. exists m, b, w, q. rewrite EL. auto.
    + intros m b. destruct (X m b) as [[-> ->]|(-> & -> & U)].
      * unfold owner_of, layout_of, s'. simpl. sets. simpl. sets. auto.
      * rewrite U. apply fa.
  - (* Makes *)
    assert (Z : sized (layout_of s n o)) by (apply la; apply (under_opened _ K); auto).
    apply with_word_sound; simpl; auto.
    + apply Word.Made.
    + rewrite Nat.div_mul; auto. destruct Z. lia.
    + congruence.
    + intros p. split; [tauto|]. intros (w0 & E & _). congruence.
  - (* Prepares *)
    destruct (ws _ _ _ H) as (a & b & c & d & e & f & g). destruct (word_step_width _ _ H0) as (Hw & Hf & Hn).
    assert (R : Word.reached w') by (eapply Word.Then; eauto).
    apply with_word_sound; auto; try congruence; try (rewrite Hf; exact e); try (rewrite H2; exact f).
    intros p. rewrite H1. split; [eauto|]. intros (w0 & E & Q). replace w with w0 by congruence. auto.
  - (* Moves *)
    destruct (ws _ _ _ H) as (a & b & c & d & e & f & g).
    assert (R : Word.reached (move w l)) by (eapply Word.Then; [eauto|apply Move; auto]).
    apply with_word_sound; simpl; auto; try congruence.
    intros p. split; [eauto|]. intros (w0 & E & Q). replace w with w0 by congruence. auto.
  - (* Gives *)
    destruct (ws _ _ _ H) as (a & b & c & d & e & f & En).
    pose proof (Word.reached_sound _ a) as Ww.
    destruct (chosen_sound _ Ww _ _ _ _ H0) as (P1 & P2 & P3 & P4).
    destruct (next_sound _ Ww _ H1) as [N1 N2].
    pose proof (la _ (word_under_open s n o w I H)) as Z. fold (layout_of s n o) in Z.
    set (l := layout_of s n o) in *. set (t := begins l (p / sequences l)).
    assert (NE : ended (owner_of s n o) = false) by (destruct (ended (owner_of s n o)); auto; specialize (En eq_refl); congruence).
    assert (FT : floor (owner_of s n o) <= t).
    { unfold t, begins in *. assert (first w / sequences l <= p / sequences l) by (apply Nat.div_le_mono; destruct Z; lia). nia. }
    assert (TB : t < bound (owner_of s n o)) by (specialize (f p ltac:(lia)); destruct Z; unfold t; lia).
    assert (SAME : forall q, p <= q < p + count -> q / sequences l = p / sequences l).
    { intros q Q. rewrite c in P3. assert (sequences l <> 0) by (destruct Z; lia).
      pose proof (Nat.div_le_mono p q (sequences l) ltac:(auto) ltac:(lia)).
      pose proof (Nat.div_le_mono q (p + count - 1) (sequences l) ltac:(auto) ltac:(lia)). lia. }
    set (k' := at_node (keys s) n (use (fence (keys s) n) o t)).
    assert (R : Prefix.reached k') by (eapply Prefix.Next; [exact kr|apply Uses; auto]).
    set (s' := System k' (layouts s) (lowest s) (set (words s) n (set (words s n) o (Some (swap w g p count))))
      (map (id l n) (seq p count) ++ ids s)).
    assert (OW : forall m v, owner_of s' m v = owner_of s m v).
    { intros m v. unfold owner_of, s', k'. simpl. destruct (Nat.eq_dec m n) as [->|]; sets; auto. }
    assert (LW : forall m v, layout_of s' m v = layout_of s m v) by reflexivity.
    assert (US : forall m v u, used (fence k' m) v u <-> used (fence (keys s) m) v u \/ (m = n /\ v = o /\ u = t)).
    { intros m v u. unfold k'. simpl. destruct (Nat.eq_dec m n) as [->|]; sets; simpl; intuition. }
    assert (W : forall m v, (m = n /\ v = o /\ words s' m v = Some (swap w g p count)) \/
      (~ (m = n /\ v = o) /\ words s' m v = words s m v)).
    { intros m v. unfold s'. simpl. destruct (Nat.eq_dec m n) as [->|]; sets; auto; [|right; intuition].
      destruct (Nat.eq_dec v o) as [->|]; sets; auto. right; intuition. }
    assert (IN : forall m v w0 q, words s m v = Some w0 -> In q (taken w0) ->
      exists w1, words s' m v = Some w1 /\ In q (taken w1)).
    { intros m v w0 q E Q. destruct (W m v) as [(-> & -> & E')|(_ & E')]; [|exists w0; split; congruence].
      eexists. split; [exact E'|]. simpl. apply in_or_app. right. replace w with w0 by congruence. auto. }
    assert (NEW : forall q, p <= q < p + count -> exists w1, words s' n o = Some w1 /\ In q (taken w1)).
    { intros q Q. destruct (W n o) as [(_ & _ & E')|(C & _)]; [|tauto].
      eexists. split; [exact E'|]. simpl. apply in_or_app. left. apply in_seq. lia. }
    split; auto.
    + intros m v w0 E. rewrite OW, LW. destruct (W m v) as [(-> & -> & E')|(_ & E')].
      * replace w0 with (swap w g p count) by congruence. simpl. repeat split; auto; try congruence.
        eapply Word.Then; [exact a|]. eapply Swap; eauto.
      * apply ws. congruence.
    + intros m v u U. apply US in U. destruct U as [U|(-> & -> & ->)].
      * destruct (ug _ _ _ U) as (w0 & q & E & Q & T). destruct (IN _ _ _ _ E Q) as (w1 & E1 & Q1). exists w1, q. auto.
      * destruct (NEW p ltac:(lia)) as (w1 & E1 & Q1). exists w1, p. auto.
    + intros m v w0 q E Q. apply US. rewrite LW. destruct (W m v) as [(-> & -> & E')|(_ & E')].
      * replace w0 with (swap w g p count) in Q by congruence. simpl in Q. apply in_app_or in Q. destruct Q as [Q|Q].
        -- right. apply in_seq in Q. repeat split; auto. unfold t. fold l. rewrite (SAME q); auto.
        -- left. eapply gu; eauto.
      * left. apply (gu m v w0); congruence.
    + intros x X. simpl in X. apply in_app_or in X. destruct X as [X|X].
      * apply in_map_iff in X. destruct X as (q & <- & Q). apply in_seq in Q.
        destruct (NEW q ltac:(lia)) as (w1 & E1 & Q1). exists n, o, w1, q. auto.
      * destruct (idf x X) as (m & v & w0 & q & E & Q & ->). destruct (IN _ _ _ _ E Q) as (w1 & E1 & Q1).
        exists m, v, w1, q. auto.
    + intros m v. rewrite OW, LW. apply fa.
    + (* no ID twice *)
      apply ids_of_a_tick_differ; auto. intros q Q X.
      destruct (idf _ X) as (m & v & w0 & q0 & E & Q0 & EQ).
      destruct (ws _ _ _ E) as (a0 & b0 & c0 & d0 & e0 & f0 & En0).
      pose proof (la _ (word_under_open s m v w0 I E)) as Z0. fold (layout_of s m v) in Z0.
      pose proof (gu _ _ _ _ E Q0) as U0.
      pose proof (place_sound _ (Word.reached_sound _ a0) _ Q0) as PL0.
      assert (UN : used (fence k' n) o t) by (apply US; auto).
      assert (U1 : used (fence k' m) v (begins (layout_of s m v) (q0 / sequences (layout_of s m v)))) by (apply US; auto).
      assert (F0 : floor (owner_of s m v) <= begins (layout_of s m v) (q0 / sequences (layout_of s m v))).
      { assert (first w0 / sequences (layout_of s m v) <= q0 / sequences (layout_of s m v)) by
          (apply Nat.div_le_mono; destruct Z0; lia). unfold begins in *. nia. }
      destruct (lt_eq_lt_dec (under (keys s) n o) (under (keys s) m v)) as [[Lt|Eq]|Gt].
      * destruct (ge _ _ (word_under_open s n o w I H) (word_under_open s m v w0 I E) Lt) as (_ & g1 & h1 & L1 & O1 & B1).
        assert (T1 : t < h1) by (eapply (what_is_closed_stays_closed k' R g1 h1); eauto).
        assert (id l n q < lowest s (under (keys s) m v)).
        { apply B1; auto. fold (layout_of s n o). fold l. rewrite (SAME q); auto. }
        pose proof (fa m v b0 _ F0). pose proof (first_id_of_tick (layout_of s m v) m q0 Z0). lia.
      * assert (LL : layout_of s m v = l) by (unfold l, layout_of; congruence). rewrite LL in *.
        apply ids_differ in EQ; auto. destruct EQ as [<- <-].
        assert (v = o).
        { eapply (no_instant_of_a_node_has_two_owners k' R n); [exact U1|]. rewrite (SAME q); auto. }
        subst v. replace w0 with w in * by congruence. specialize (N2 _ Q0). lia.
      * destruct (ge _ _ (word_under_open s m v w0 I E) (word_under_open s n o w I H) Gt) as (_ & g1 & h1 & L1 & O1 & B1).
        assert (T1 : begins (layout_of s m v) (q0 / sequences (layout_of s m v)) < h1) by
          (eapply (what_is_closed_stays_closed (keys s) kr g1 h1); eauto).
        assert (id (layout_of s m v) m q0 < lowest s (under (keys s) n o)) by (apply B1; auto).
        pose proof (fa n o b _ FT). pose proof (first_id_of_tick l n q Z). fold l in H3.
        rewrite (SAME q Q) in H4. lia.
  - (* Ends *)
    assert (LE : forall u, used (fence (keys s) n) o u -> u < e).
    { intros u U. destruct (ug _ _ _ U) as (w & q & E & Q & ->). rewrite E in H1. destruct H1 as [Nn ->].
      destruct (ws _ _ _ E) as (a & _). pose proof (final_sound _ (Word.reached_sound _ a) Nn _ Q) as Lf.
      pose proof (place_sound _ (Word.reached_sound _ a) _ Q) as [Pf _].
      pose proof (la _ (word_under_open s n o w I E)) as Z. fold (layout_of s n o) in Z.
      unfold end_of. destruct (Nat.leb_spec (final w) (first w)); [lia|].
      assert (q / sequences (layout_of s n o) <= (final w - 1) / sequences (layout_of s n o)) by
        (apply Nat.div_le_mono; destruct Z; lia).
      apply Nat.lt_le_trans with (begins (layout_of s n o) ((final w - 1) / sequences (layout_of s n o) + 1)); [|lia].
      unfold begins. destruct Z. nia. }
    assert (FE : floor (owner_of s n o) <= e) by (destruct (words s n o); [destruct H1 as [_ ->]|subst]; lia).
    set (k' := at_node (keys s) n (stop (fence (keys s) n) o e)).
    assert (R : Prefix.reached k') by (eapply Prefix.Next; [exact kr|apply Stops; auto]).
    assert (OW : forall m v, owner_of (with_keys s k') m v = owner_of s m v \/ (m = n /\ v = o /\
      began (owner_of (with_keys s k') m v) = began (owner_of s m v) /\
      floor (owner_of (with_keys s k') m v) = floor (owner_of s m v) /\
      bound (owner_of (with_keys s k') m v) = bound (owner_of s m v))).
    { intros m v. unfold owner_of, with_keys, k'. simpl. destruct (Nat.eq_dec m n) as [->|]; sets; auto.
      simpl. destruct (Nat.eq_dec v o) as [->|]; sets; auto. right. repeat split; auto. }
    assert (US : forall m v u, used (fence k' m) v u <-> used (fence (keys s) m) v u).
    { intros m v u. unfold k'. simpl. destruct (Nat.eq_dec m n) as [->|]; sets; simpl; tauto. }
    split; try exact R; try exact nd; try exact la; try exact ge; try exact idf.
    + intros m v w E. specialize (ws _ _ _ E). destruct (OW m v) as [->|(-> & -> & -> & -> & ->)]; auto.
      destruct ws as (a & b & c & d & e' & f & g). repeat split; auto. intros _.
      simpl in E. rewrite E in H1. tauto.
    + intros m v u U. apply US in U. exact (ug _ _ _ U).
    + intros m v w q E Q. apply US. exact (gu _ _ _ _ E Q).
    + intros m v. specialize (fa m v). destruct (OW m v) as [->|(-> & -> & -> & -> & _)]; auto.
Qed.

Lemma reached_sound s : reached s -> sound s.
Proof. induction 1; [apply start_sound|eapply step_sound; eauto]. Qed.

(* ===== The theorem ===== *)

(* The list of all IDs that were ever taken, by all members and in all generations of the name, has none twice; and no
   place is given twice of those that were taken (Word.v). *)
Theorem no_id_is_given_twice s : reached s -> NoDup (ids s).
Proof. intros R. apply (no_id_twice s (reached_sound s R)). Qed.

(* The model is not empty: an owner claims a node ID, makes a generator, and gives two IDs. *)
Theorem ids_are_given : exists s, reached s /\ ids s = [2; 3].
Proof.
  pose (l := Layout 0 1 2 2).
  pose (s1 := System (turn (keys start) (Some 0)) (set (layouts start) 1 l) (set (lowest start) 1 0) (words start) (ids start)).
  assert (R1 : reached s1).
  { eapply Next; [apply Start|]. apply (Opens start 0 l 0); cbn; auto; try lia; try (intros; tauto). }
  pose (s2 := with_keys s1 (begin (keys s1) 1 7 0 1)).
  assert (R2 : reached s2).
  { eapply Next; [exact R1|]. apply (Begins s1 1 7 0 1 0); cbn; auto; try lia. }
  pose (x := fun n => if n =? 1 then Some (Part Take (Write 7 0 10)) else None).
  pose (s3 := with_keys s2 (post (keys s2) x)).
  assert (R3 : reached s3).
  { eapply Next; [exact R2|]. apply Stores.
    - apply Post. intros n a. unfold x. destruct (Nat.eqb_spec n 1); [subst|discriminate]. intros E. inversion E; subst.
      split; [reflexivity|split; [reflexivity|left; split; [reflexivity|]]]. change (0 <= 10). lia.
    - split; auto. intros n o. cbn. destruct (x n); repeat split; auto. }
  pose (s4 := with_keys s3 (commit (keys s3) x)).
  assert (R4 : reached s4).
  { eapply Next; [exact R3|]. apply Stores.
    - apply Commit; [cbn; auto|]. intros n a. unfold x. destruct (Nat.eqb_spec n 1); [subst|discriminate].
      intros E. inversion E; subst. split; [reflexivity|split; reflexivity].
    - split; auto. intros n o. cbn. destruct (x n); repeat split; auto. }
  pose (s5 := with_keys s4 (at_node (keys s4) 1 (learn (fence (keys s4) 1) 7 1 10))).
  assert (R5 : reached s5).
  { eapply Next; [exact R4|]. apply Stores.
    - apply Learns; cbn; auto.
    - split; auto. intros m b. unfold at_node. cbn [fence under]. destruct (Nat.eq_dec m 1) as [->|]; sets; [|repeat split; auto].
      unfold learn. cbn [owners used]. destruct (Nat.eq_dec b 7) as [->|]; sets;
        cbn [began ended floor bound]; repeat split; auto; lia. }
  pose (s6 := with_word s5 1 7 (made 2 0 20)).
  assert (R6 : reached s6).
  { eapply Next; [exact R5|]. apply (Makes s5 1 7 0 20); cbn [l node_ids]; try reflexivity; try (cbn; lia).
    intros p P. change (0 + p / 2 * 1 + 1 <= 10). assert (p / 2 < 10) by (apply Nat.div_lt_upper_bound; lia). lia. }
  pose (w6 := made 2 0 20).
  pose (s7 := with_word s6 1 7 (load w6 3 0)).
  assert (R7 : reached s7).
  { eapply Next; [exact R6|]. eapply Prepares with (w := w6); try reflexivity. apply Load. reflexivity. }
  pose (w7 := load w6 3 0).
  pose (s8 := with_word s7 1 7 (choose w7 3 0 0 2)).
  assert (R8 : reached s8).
  { eapply Next; [exact R7|]. eapply Prepares with (w := w7); try reflexivity. apply Choose; cbn; auto; lia. }
  eexists. split.
  - eapply Next; [exact R8|]. eapply (Gives s8 1 7 _ 3 0 0 2); reflexivity.
  - reflexivity.
Qed.
