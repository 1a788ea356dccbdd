(define (domain logistics-2p-learned)
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
             (p10)
             (p11)
             (p12)
             (p13)
             (p14)
             (p15)
             (p16)
             (p17)
             (p18)
             (p19)
 )
 (:action drive--t1--a1--s1--c1
  :parameters ()
  :precondition (and (p17))
  :effect (and (p12) (not (p17))))
 (:action drive--t1--s1--a1--c1
  :parameters ()
  :precondition (and (p12))
  :effect (and (not (p12)) (p17)))
 (:action drive--t2--a2--s2--c2
  :parameters ()
  :precondition (and (p16))
  :effect (and (p2) (p5) (not (p16))))
 (:action drive--t2--s2--a2--c2
  :parameters ()
  :precondition (and (p2) (p5))
  :effect (and (not (p2)) (not (p5)) (p16)))
 (:action fly--jet--a1--a2
  :parameters ()
  :precondition (and (p4))
  :effect (and (not (p4)) (p15)))
 (:action fly--jet--a2--a1
  :parameters ()
  :precondition (and (p15))
  :effect (and (p4) (not (p15))))
 (:action load-truck--p1--t1--a1--c1
  :parameters ()
  :precondition (and (p8) (p17))
  :effect (and (not (p0)) (not (p1)) (not (p3)) (not (p7)) (not (p8)) (p11) (not (p12))))
 (:action load-truck--p1--t1--s1--c1
  :parameters ()
  :precondition (and (p12))
  :effect (and (not (p12))))
 (:action load-truck--p1--t2--a2--c2
  :parameters ()
  :precondition (and (p1) (p16))
  :effect (and (p0) (not (p1)) (not (p2)) (not (p3)) (not (p5)) (not (p7))))
 (:action load-truck--p1--t2--s2--c2
  :parameters ()
  :precondition (and (p2) (p5) (p7))
  :effect (and (p0) (not (p1)) (not (p3)) (not (p7)) (not (p16))))
 (:action load-truck--p2--t1--a1--c1
  :parameters ()
  :precondition (and (p13) (p17))
  :effect (and (not (p9)) (not (p10)) (not (p12)) (not (p13)) (p14)))
 (:action load-truck--p2--t1--s1--c1
  :parameters ()
  :precondition (and (p9) (p12))
  :effect (and (not (p9)) (not (p10)) (not (p13)) (p14) (not (p17))))
 (:action load-truck--p2--t2--a2--c2
  :parameters ()
  :precondition (and (p6) (p16))
  :effect (and (not (p2)) (not (p5)) (not (p10)) (p11) (not (p14))))
 (:action load-truck--p2--t2--s2--c2
  :parameters ()
  :precondition (and (p2) (p5) (p11))
  :effect (and (not (p8))))
 (:action unload-truck--p1--t1--a1--c1
  :parameters ()
  :precondition (and (p11) (p17))
  :effect (and (not (p3)) (p8) (not (p11)) (not (p12))))
 (:action unload-truck--p1--t1--s1--c1
  :parameters ()
  :precondition (and (p11) (p12)))
 (:action unload-truck--p1--t2--a2--c2
  :parameters ()
  :precondition (and (p0) (p16))
  :effect (and (not (p0)) (p1) (not (p2)) (not (p3)) (not (p5)) (not (p7))))
 (:action unload-truck--p1--t2--s2--c2
  :parameters ()
  :precondition (and (p0) (p2) (p5))
  :effect (and (not (p0)) (not (p1)) (not (p3)) (p7) (not (p16))))
 (:action unload-truck--p2--t1--a1--c1
  :parameters ()
  :precondition (and (p14) (p17))
  :effect (and (not (p9)) (not (p10)) (not (p12)) (p13) (not (p14))))
 (:action unload-truck--p2--t1--s1--c1
  :parameters ()
  :precondition (and (p12) (p14))
  :effect (and (p9) (not (p10)) (not (p13)) (not (p14)) (not (p17))))
 (:action unload-truck--p2--t2--a2--c2
  :parameters ()
  :precondition (and (p11) (p16))
  :effect (and (not (p5)) (not (p8)) (not (p11))))
 (:action unload-truck--p2--t2--s2--c2
  :parameters ()
  :precondition (and (p5)))
 (:action load-plane--p1--jet--a1
  :parameters ()
  :precondition (and (p4) (p8))
  :effect (and (not (p0)) (not (p1)) (p3) (not (p7)) (not (p8)) (not (p15))))
 (:action load-plane--p1--jet--a2
  :parameters ()
  :precondition (and (p1) (p15))
  :effect (and (not (p0)) (not (p1)) (p3) (not (p4)) (not (p7))))
 (:action load-plane--p2--jet--a1
  :parameters ()
  :precondition (and (p4) (p13))
  :effect (and (not (p9)) (p10) (not (p13)) (not (p14)) (not (p15))))
 (:action load-plane--p2--jet--a2
  :parameters ()
  :precondition (and (p6) (p15))
  :effect (and (not (p4)) (not (p6)) (p10) (not (p13)) (not (p14))))
 (:action unload-plane--p1--jet--a1
  :parameters ()
  :precondition (and (p3) (p4))
  :effect (and (not (p0)) (not (p1)) (not (p3)) (not (p7)) (p8) (not (p15))))
 (:action unload-plane--p1--jet--a2
  :parameters ()
  :precondition (and (p3) (p15))
  :effect (and (not (p0)) (p1) (not (p3)) (not (p4)) (not (p7))))
 (:action unload-plane--p2--jet--a1
  :parameters ()
  :precondition (and (p4) (p10))
  :effect (and (not (p9)) (not (p10)) (p13) (not (p14)) (not (p15))))
 (:action unload-plane--p2--jet--a2
  :parameters ()
  :precondition (and (p10) (p15))
  :effect (and (not (p4)) (p6) (not (p9)) (not (p10)) (not (p13)) (not (p14))))
)
