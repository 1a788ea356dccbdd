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
  :precondition (and (p4) (p5))
  :effect (and (p0) (not (p1)) (not (p2)) (not (p3)) (not (p4))))
 (:action pick-up--b
  :parameters ()
  :precondition (and (p4) (p5))
  :effect (and (not (p0)) (not (p1)) (not (p2)) (p3) (not (p4))))
 (:action put-down--a
  :parameters ()
  :precondition (and (p0) (p5))
  :effect (and (not (p0)) (not (p1)) (not (p2)) (not (p3)) (p4)))
 (:action put-down--b
  :parameters ()
  :precondition (and (p3))
  :effect (and (not (p0)) (not (p1)) (not (p2)) (not (p3)) (p4) (p5)))
 (:action stack--a--b
  :parameters ()
  :precondition (and (p0) (p5))
  :effect (and (not (p0)) (not (p1)) (p2) (not (p3)) (not (p4))))
 (:action stack--b--a
  :parameters ()
  :precondition (and (p3))
  :effect (and (not (p0)) (p1) (not (p2)) (not (p3)) (not (p4))))
 (:action unstack--a--b
  :parameters ()
  :precondition (and (p2) (p5))
  :effect (and (p0) (not (p1)) (not (p2)) (not (p3)) (not (p4))))
 (:action unstack--b--a
  :parameters ()
  :precondition (and (p1))
  :effect (and (not (p0)) (not (p1)) (not (p2)) (p3) (not (p4)) (not (p5))))
)
