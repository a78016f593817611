(* One process's word: a generator never gives a place twice, however many goroutines ask it at once.

   A place is a tick and a sequence together, as one number: the places of tick k are k * width to k * width + width - 1. A
   goroutine that takes places does three things, and others may do theirs in between: it loads the word, it chooses
   places by what its clock and the limit say, and it swaps the word if that is still what it loaded. The places are
   taken then. It gives them one by one: at once, or, as a Local, whenever it is asked; or it takes others, and never
   gives the rest. A Local counts as a goroutine of its own. The clock may show anything, and a caller may move the word
   forward to any place. A goroutine that is never scheduled again takes no more steps. *)

From Coq Require Import Arith Lia List Sorted.
Import ListNotations.

(* ===== The model ===== *)

Definition place := nat.
Definition goroutine := nat.

(* How far a goroutine has come with taking places. *)
Inductive call :=
| Idle
| Loaded (n : place)                   (* it has loaded the word, which was n *)
| Chosen (n p : place) (count : nat).  (* it wants the places p to p + count - 1 *)

Record word := Word {
  width : nat;              (* firn.Generator.perTick: how many places a tick has *)
  first : place;            (* firn.Generator.unused: where the generator began *)
  next  : option place;     (* firn.Generator.next: the lowest free place; None: firn.stopped, beyond every limit *)
  limit : place;            (* firn.Generator.limit: the first place that may not be used *)
  final : place;            (* once stopped: the lowest free place at that moment *)
  calls : goroutine -> call;
  taken : list place;       (* all places that were ever taken *)
  held  : goroutine -> list place; (* from firn.Local.next to firn.Local.end: what it has taken and not given yet *)
  given : list place;       (* all places that were ever given *)
  got   : goroutine -> list place }. (* those of one goroutine, the latest first *)

Definition put {A} (f : nat -> A) (k : nat) (x : A) : nat -> A := fun i => if Nat.eqb i k then x else f i.

(* firn.NewGenerator: the generator begins at a place, and has a limit. *)
Definition made (ticks_width f l : nat) : word := 
  Word ticks_width f (Some f) l 0 (fun _ => Idle) [] (fun _ => []) [] (fun _ => []).

Definition load (w : word) (g : goroutine) (n : place) : word :=
  Word (width w) (first w) (next w) (limit w) (final w) (put (calls w) g (Loaded n)) (taken w) (held w) (given w)
    (got w).
Definition choose (w : word) (g : goroutine) (n p : place) (count : nat) : word :=
  Word (width w) (first w) (next w) (limit w) (final w) (put (calls w) g (Chosen n p count)) (taken w) (held w)
    (given w) (got w).
Definition swap (w : word) (g : goroutine) (p : place) (count : nat) : word :=
  Word (width w) (first w) (Some (p + count)) (limit w) (final w) (put (calls w) g Idle) (seq p count ++ taken w)
    (put (held w) g (seq p count)) (given w) (got w).
Definition give (w : word) (g : goroutine) (p : place) (rest : list place) : word :=
  Word (width w) (first w) (next w) (limit w) (final w) (calls w) (taken w) (put (held w) g rest) (p :: given w)
    (put (got w) g (p :: got w g)).
Definition abandon (w : word) (g : goroutine) : word :=
  Word (width w) (first w) (next w) (limit w) (final w) (put (calls w) g Idle) (taken w) (held w) (given w) (got w).
Definition move (w : word) (l : place) : word :=
  Word (width w) (first w) (next w) l (final w) (calls w) (taken w) (held w) (given w) (got w).
Definition advance (w : word) (p : place) : word :=
  Word (width w) (first w) (Some p) (limit w) (final w) (calls w) (taken w) (held w) (given w) (got w).
Definition halt (w : word) (n : place) : word :=
  Word (width w) (first w) None (limit w) n (calls w) (taken w) (held w) (given w) (got w).

Inductive step (w : word) : word -> Prop :=

(* firn.Generator.reserve or firn.Generator.quick loads the word. *)
| Load g n :
    next w = Some n ->
    step w (load w g n)

(* firn.Generator.reserve chooses places of one tick, at or after the word and below the limit: which, is the clock's
   to say. firn.Generator.quick chooses the word itself. *)
| Choose g n p count :
    calls w g = Loaded n ->
    n <= p -> 1 <= count -> p / width w = (p + count - 1) / width w -> p + count <= limit w ->
    step w (choose w g n p count)

(* firn.Generator.reserve or firn.Generator.quick swaps the word, which is still what it loaded: the places are
   taken, and firn.Local.take forgets those that it has left. *)
| Swap g n p count :
    calls w g = Chosen n p count -> next w = Some n ->
    step w (swap w g p count)

(* firn.Generator.Next or firn.Local.TryNext gives the first place that it holds, however much later, and whatever has
   happened to the word. *)
| Give g p rest :
    held w g = p :: rest ->
    step w (give w g p rest)

(* firn.Generator.reserve finds that the word has changed, or that there is no place now; it begins again or returns an
   error. *)
| Abandon g :
    step w (abandon w g)

(* firn.Generator.SetBound moves the limit. *)
| Move l :
    limit w <= l ->
    step w (move w l)

(* firn.Generator.Advance swaps the word for a later one: the places between are never taken. *)
| Advance n p :
    next w = Some n -> n <= p ->
    step w (advance w p)

(* firn.Generator.Stop swaps the word for one that is beyond every limit. *)
| Halt n :
    next w = Some n ->
    step w (halt w n).

(* ===== The proof ===== *)

Record sound (w : word) : Prop := {
  place_sound : forall p, In p (taken w) -> first w <= p < limit w;
  next_sound : forall n, next w = Some n -> first w <= n /\ forall p, In p (taken w) -> p < n;
  final_sound : next w = None -> forall p, In p (taken w) -> p < final w;
  loaded_sound : forall g n, calls w g = Loaded n -> first w <= n;
  chosen_sound : forall g n p c, calls w g = Chosen n p c ->
    first w <= n <= p /\ 1 <= c /\ p / width w = (p + c - 1) / width w /\ p + c <= limit w;
  held_taken : forall g p, In p (held w g) -> In p (taken w) /\ ~ In p (given w);
  held_apart : forall g h p, In p (held w g) -> In p (held w h) -> g = h;
  held_ascends : forall g, StronglySorted lt (held w g);
  given_taken : forall p, In p (given w) -> In p (taken w);
  got_given : forall g p, In p (got w g) -> In p (given w);
  got_before : forall g p q, In p (got w g) -> In q (held w g) -> p < q;
  got_ascends : forall g, StronglySorted gt (got w g);
  distinct : NoDup (given w) }.

Lemma made_sound k f l : sound (made k f l).
Proof.
  split; simpl; try discriminate; try tauto.
  - intros n E. inversion E. split; [lia|tauto].
  - constructor.
  - constructor.
  - constructor.
Qed.

Ltac cases := unfold put in *; repeat match goal with
  | |- context [Nat.eqb ?a ?b] => destruct (Nat.eqb_spec a b); subst
  | H : context [Nat.eqb ?a ?b] |- _ => destruct (Nat.eqb_spec a b); subst end.

Lemma seq_ascends p c : StronglySorted lt (seq p c).
Proof.
  revert p. induction c as [|c IH]; intros p; simpl; constructor; auto.
  apply Forall_forall. intros x X. apply in_seq in X. lia.
Qed.

Lemma step_sound w w' : sound w -> step w w' -> sound w'.
Proof.
  intros [ps ns fs ls cs ht ha hs gt gg gb gs ds] S.
  destruct S; unfold load, choose, swap, give, abandon, move, advance, halt.
  - (* Load *) split; simpl; auto; intros g' *; cases; intros E; try discriminate; eauto.
    inversion E; subst. apply ns in H. tauto.
  - (* Choose *) split; simpl; auto; intros g' *; cases; intros E; try discriminate; eauto.
    inversion E; subst. pose proof (ls _ _ H). repeat split; auto.
  - (* Swap *) destruct (cs _ _ _ _ H) as (L & C & W & B). destruct (ns _ H0) as [F A].
    assert (N : forall q, In q (seq p count) -> ~ In q (taken w)).
    { intros q Q T. apply in_seq in Q. apply A in T. lia. }
    split; simpl; auto.
    + intros q. rewrite in_app_iff, in_seq. intros [Q|Q]; [lia|]. apply ps in Q. lia.
    + intros m E. inversion E; subst. split; [lia|]. intros q. rewrite in_app_iff, in_seq. intros [Q|Q]; [lia|].
      apply A in Q. lia.
    + discriminate.
    + intros g' m. cases; intros E; try discriminate; eauto.
    + intros g' m q d. cases; intros E; try discriminate; eauto.
    + intros g' q. rewrite in_app_iff. cases; intros Q.
      * split; [tauto|]. intros G. apply (N q Q). auto.
      * apply ht in Q. tauto.
    + intros g' h q. cases; auto; intros Q R.
      * destruct (N q Q). apply (ht _ _ R).
      * destruct (N q R). apply (ht _ _ Q).
      * apply (ha g' h q); auto.
    + intros g'. cases; auto. apply seq_ascends.
    + intros q Q. apply in_or_app. auto.
    + intros g' q r. cases; eauto. intros Q R. apply gg, gt, A in Q. apply in_seq in R. lia.
  - (* Give *) pose proof (hs g) as O. rewrite H in O. inversion O as [|? ? O' P]; subst.
    rewrite Forall_forall in P.
    assert (I : In p (held w g)) by (rewrite H; simpl; auto).
    assert (R : forall q, In q rest -> In q (held w g)) by (intros q Q; rewrite H; simpl; auto).
    destruct (ht _ _ I) as [T U].
    split; simpl; auto.
    + intros g' q. cases; intros Q.
      * destruct (ht _ _ (R q Q)) as [T' U']. split; auto. intros [E|E]; auto. subst. apply P in Q. lia.
      * destruct (ht _ _ Q) as [T' U']. split; auto. intros [E|E]; auto. subst. destruct n. eapply ha; eauto.
    + intros g' h q. cases; intros Q Q'; eauto.
    + intros g'. cases; auto.
    + intros q [Q|Q]; subst; auto.
    + intros g' q. cases; simpl; [intros [Q|Q]; subst|]; eauto.
    + intros g' q r. cases; eauto. intros [Q|Q] E; subst; auto. apply (gb g); auto.
    + intros g'. cases; auto. constructor; auto. apply Forall_forall. intros q Q. apply (gb g q p); auto.
    + constructor; auto.
  - (* Abandon *) split; simpl; auto; intros g' *; cases; intros E; try discriminate; eauto.
  - (* Move *) split; simpl; auto.
    + intros p P. apply ps in P. lia.
    + intros g n p c E. apply cs in E. repeat split; try tauto; lia.
  - (* Advance *) destruct (ns _ H) as [F A]. split; simpl; auto; try discriminate.
    intros m E. inversion E; subst. split; [lia|]. intros q Q. apply A in Q. lia.
  - (* Halt *) split; simpl; auto; try discriminate. intros _ p P. apply ns in H. apply H. auto.
Qed.

(* ===== The theorem ===== *)

Inductive reached : word -> Prop :=
| Made k f l : reached (made k f l)
| Then w w' : reached w -> step w w' -> reached w'.

Lemma reached_sound w : reached w -> sound w.
Proof. induction 1; [apply made_sound|eapply step_sound; eauto]. Qed.

(* No place is in the list of what was given twice. *)
Theorem no_place_is_given_twice w : reached w -> NoDup (given w).
Proof. intros R. apply (distinct w (reached_sound w R)). Qed.

(* All places lie between where the generator began and its limit. *)
Theorem places_lie_below_the_limit w : reached w -> forall p, In p (given w) -> first w <= p < limit w.
Proof. intros R p P. apply reached_sound in R. apply (place_sound w R), (given_taken w R), P. Qed.

(* The places that one goroutine gets ascend, and so do those of a Local: the latest exceeds all before it. *)
Theorem places_of_one_goroutine_ascend w g : reached w -> StronglySorted gt (got w g).
Proof. intros R. apply (got_ascends w (reached_sound w R)). Qed.

(* What firn.Generator.Stop finds in the word lies behind every place that was given, *)
Theorem nothing_comes_after_stop w : reached w -> next w = None -> forall p, In p (given w) -> p < final w.
Proof. intros R N p P. apply reached_sound in R. apply (final_sound w R N), (given_taken w R), P. Qed.

(* and behind every place that a Local still holds. *)
Theorem stop_covers_what_is_held w g : reached w -> next w = None -> forall p, In p (held w g) -> p < final w.
Proof. intros R N p P. apply reached_sound in R. apply (final_sound w R N), (held_taken w R g p P). Qed.

(* ===== Stop ===== *)

(* Several goroutines may call firn.Generator.Stop at once. Each does three things under a lock: it swaps the word, it notes
   the end of use if it was the one that stopped the generator, and it returns what is noted. *)
Inductive stopping :=
| Nobody                         (* nobody holds the lock *)
| Entered                        (* a goroutine holds it, and has not swapped yet *)
| Halted (n : place)             (* it has swapped a word that was n, and has not noted that yet *)
| Leaving.                       (* it returns what is noted *)

Record stoppable := Stoppable {
  generator : word;
  lock : stopping;
  noted : place;                 (* firn.Generator.used; 0: nothing *)
  returned : list place }.       (* what calls of firn.Generator.Stop have returned *)

Inductive stop_step (s : stoppable) : stoppable -> Prop :=

(* Anything but firn.Generator.Stop happens to the generator. *)
| Other w :
    step (generator s) w -> (next w = None -> next (generator s) = None) ->
    stop_step s (Stoppable w (lock s) (noted s) (returned s))

(* firn.Generator.Stop takes the lock. *)
| Enter :
    lock s = Nobody ->
    stop_step s (Stoppable (generator s) Entered (noted s) (returned s))

(* firn.Generator.Stop swaps the word of a generator that is not stopped. *)
| First n :
    lock s = Entered -> next (generator s) = Some n ->
    stop_step s (Stoppable (halt (generator s) n) (Halted n) (noted s) (returned s))

(* firn.Generator.Stop notes the end of use. *)
| Note n :
    lock s = Halted n ->
    stop_step s (Stoppable (generator s) Leaving n (returned s))

(* firn.Generator.Stop finds a generator that is stopped. *)
| Again :
    lock s = Entered -> next (generator s) = None ->
    stop_step s (Stoppable (generator s) Leaving (noted s) (returned s))

(* firn.Generator.Stop returns what is noted, and gives the lock back. *)
| Return :
    lock s = Leaving ->
    stop_step s (Stoppable (generator s) Nobody (noted s) (noted s :: returned s)).

Inductive stop_reached : stoppable -> Prop :=
| Begun w : reached w -> next w <> None -> stop_reached (Stoppable w Nobody 0 [])
| On s s' : stop_reached s -> stop_step s s' -> stop_reached s'.

Record stop_sound (s : stoppable) : Prop := {
  generator_sound : reached (generator s);
  halted_sound : forall n, lock s = Halted n -> next (generator s) = None /\ n = final (generator s);
  leaving_sound : lock s = Leaving -> next (generator s) = None;
  noted_sound : next (generator s) = None -> (forall n, lock s <> Halted n) -> noted s = final (generator s);
  returned_sound : forall p, In p (returned s) -> next (generator s) = None /\ p = final (generator s) }.

Lemma final_stays w w' : step w w' -> next w = None -> next w' = None /\ final w' = final w.
Proof. intros S E. destruct S; simpl in *; try rewrite E in *; try discriminate; auto. Qed.

Lemma stop_reached_sound s : stop_reached s -> stop_sound s.
Proof.
  induction 1 as [w R E|s s' _ [rs hs ls ns es] S].
  - split; simpl; auto; try discriminate; try tauto.
  - destruct S as [w S K|L|n L N|n L|L N|L]; split; simpl; auto; try discriminate.
    + eapply Then; eauto.
    + intros n E. destruct (hs n E) as [N F]. destruct (final_stays _ _ S N) as [N' F']. rewrite F'. auto.
    + intros E. specialize (ls E). apply (final_stays _ _ S ls).
    + intros N H. pose proof (K N) as N0. destruct (final_stays _ _ S N0) as [_ F]. rewrite F. auto.
    + intros p P. destruct (es p P) as [N F]. destruct (final_stays _ _ S N) as [N' F']. rewrite F'. auto.
    + intros N _. apply ns; auto. rewrite L. discriminate.
    + eapply Then; [exact rs|]. apply Halt. exact N.
    + intros m E. inversion E; auto.
    + intros _ H. exfalso. apply (H n). reflexivity.
    + intros p P. destruct (es p P) as [M _]. rewrite M in N. discriminate.
    + intros _. apply (hs n L).
    + intros _ _. apply (hs n L).
    + intros N' _. apply ns; auto. rewrite L. discriminate.
    + intros N _. apply ns; auto. rewrite L. discriminate.
    + intros p [P|P]; auto. split; auto. rewrite <- P. apply ns; auto. rewrite L. discriminate.
Qed.

(* Whatever calls of firn.Generator.Stop return, also at one time, lies behind every place that was or will be given, and
   all return the same. *)
Theorem stops_return_the_same s p q : stop_reached s ->
  In p (returned s) -> In q (returned s) -> p = q /\ forall x, In x (given (generator s)) -> x < p.
Proof.
  intros R P Q. apply stop_reached_sound in R. destruct (returned_sound s R p P) as [N E].
  destruct (returned_sound s R q Q) as [_ F]. split; [congruence|]. intros x X. rewrite E.
  apply (nothing_comes_after_stop _ (generator_sound s R) N x X).
Qed.
