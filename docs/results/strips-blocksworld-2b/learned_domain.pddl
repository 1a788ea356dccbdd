(define (domain blocksworld-2b-learned)
 (:requirements :strips)
 (:predicates 
             (p0)
             (p1)
             (p2)
             (p3)
             (p4)
             (p5)
             (p6)
             (p7)
             (p8)
 )
 (:action pick-up--a
  :parameters ()
  :precondition (and (p0) (p1) (p3))
  :effect (and (not (p1)) (not (p2)) (not (p4)) (not (p5)) (p6)))
 (:action pick-up--b
  :parameters ()
  :precondition (and (p0) (p1) (p3))
  :effect (and (not (p0)) (not (p2)) (not (p3)) (p4) (not (p5)) (not (p6))))
 (:action put-down--a
  :parameters ()
  :precondition (and (p0) (p3) (p6))
  :effect (and (p1) (not (p2)) (not (p4)) (not (p5)) (not (p6))))
 (:action put-down--b
  :parameters ()
  :precondition (and (p1) (p4))
  :effect (and (p0) (not (p2)) (p3) (not (p4)) (not (p5)) (not (p6))))
 (:action stack--a--b
  :parameters ()
  :precondition (and (p0) (p3) (p6))
  :effect (and (not (p1)) (p2) (not (p4)) (not (p5)) (not (p6))))
 (:action stack--b--a
  :parameters ()
  :precondition (and (p1) (p4))
  :effect (and (not (p0)) (not (p2)) (p3) (not (p4)) (p5) (not (p6))))
 (:action unstack--a--b
  :parameters ()
  :precondition (and (p0) (p2) (p3))
  :effect (and (not (p1)) (not (p2)) (not (p4)) (not (p5)) (p6)))
 (:action unstack--b--a
  :parameters ()
  :precondition (and (p1) (p3) (p5))
  :effect (and (not (p0)) (not (p2)) (p4) (not (p5)) (not (p6))))
)
