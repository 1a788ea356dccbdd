(define (domain ferry-1c-learned)
 (:requirements :strips)
 (:predicates 
             (p0)
             (p1)
             (p2)
             (p3)
             (p4)
             (p5)
 )
 (:action sail--l1--l2
  :parameters ()
  :precondition (and (p5))
  :effect (and (p2) (not (p5))))
 (:action sail--l2--l1
  :parameters ()
  :precondition (and (p2))
  :effect (and (not (p2)) (p5)))
 (:action board--c1--l1
  :parameters ()
  :precondition (and (p0) (p4) (p5))
  :effect (and (not (p0)) (not (p1)) (not (p2)) (p3) (not (p4))))
 (:action board--c1--l2
  :parameters ()
  :precondition (and (p0) (p1) (p2))
  :effect (and (not (p0)) (not (p1)) (p3) (not (p4)) (not (p5))))
 (:action debark--c1--l1
  :parameters ()
  :precondition (and (p3) (p5))
  :effect (and (p0) (not (p1)) (not (p2)) (not (p3)) (p4)))
 (:action debark--c1--l2
  :parameters ()
  :precondition (and (p2) (p3))
  :effect (and (p0) (p1) (not (p3)) (not (p4)) (not (p5))))
)
