(define (domain ferry-2c-learned)
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
             (p9)
 )
 (:action sail--l1--l2
  :parameters ()
  :precondition (and (p3))
  :effect (and (not (p3)) (p6)))
 (:action sail--l2--l1
  :parameters ()
  :precondition (and (p6))
  :effect (and (p3) (not (p6))))
 (:action board--c1--l1
  :parameters ()
  :precondition (and (p1) (p3) (p5))
  :effect (and (p4) (not (p5)) (not (p6)) (p7)))
 (:action board--c1--l2
  :parameters ()
  :precondition (and (p5) (p6) (p7))
  :effect (and (p1) (not (p3)) (p4) (not (p5))))
 (:action board--c2--l1
  :parameters ()
  :precondition (and (p2) (p3) (p5))
  :effect (and (p0) (not (p4)) (not (p5)) (not (p6))))
 (:action board--c2--l2
  :parameters ()
  :precondition (and (p0) (p5) (p6))
  :effect (and (p2) (not (p3)) (not (p4)) (not (p5))))
 (:action debark--c1--l1
  :parameters ()
  :precondition (and (p1) (p3) (p4) (p7))
  :effect (and (not (p4)) (p5) (not (p6)) (not (p7))))
 (:action debark--c1--l2
  :parameters ()
  :precondition (and (p1) (p4) (p6) (p7))
  :effect (and (not (p1)) (not (p3)) (not (p4)) (p5)))
 (:action debark--c2--l1
  :parameters ()
  :precondition (and (p0) (p2) (p3))
  :effect (and (not (p0)) (not (p4)) (p5) (not (p6))))
 (:action debark--c2--l2
  :parameters ()
  :precondition (and (p0) (p2) (p6))
  :effect (and (not (p2)) (not (p3)) (not (p4)) (p5)))
)
