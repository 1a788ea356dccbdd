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
  :precondition (and (p3))
  :effect (and (not (p3)) (p11)))
 (:action drive--t1--s1--a1--c1
  :parameters ()
  :precondition (and (p11))
  :effect (and (p3) (not (p11))))
 (:action drive--t2--a2--s2--c2
  :parameters ()
  :precondition (and (p9))
  :effect (and (p8) (not (p9))))
 (:action drive--t2--s2--a2--c2
  :parameters ()
  :precondition (and (p8))
  :effect (and (not (p1)) (not (p8)) (p9)))
 (:action fly--jet--a1--a2
  :parameters ()
  :precondition (and (p10))
  :effect (and (not (p10)) (p16)))
 (:action fly--jet--a2--a1
  :parameters ()
  :precondition (and (p16))
  :effect (and (p10) (not (p16))))
 (:action load-truck--p1--t1--a1--c1
  :parameters ()
  :precondition (and (p3) (p13))
  :effect (and (not (p11))))
 (:action load-truck--p1--t1--s1--c1
  :parameters ()
  :precondition (and (p0) (p1) (p16)))
 (:action load-truck--p1--t2--a2--c2
  :parameters ()
  :precondition (and (p4) (p9))
  :effect (and (not (p0)) (not (p4)) (p7) (not (p8)) (not (p12))))
 (:action load-truck--p1--t2--s2--c2
  :parameters ()
  :precondition (and (p8) (p12))
  :effect (and (not (p4)) (p7) (not (p9)) (not (p12))))
 (:action load-truck--p2--t1--a1--c1
  :parameters ()
  :precondition (and (p3) (p5))
  :effect (and (not (p2)) (not (p5)) (not (p11)) (p14) (not (p15))))
 (:action load-truck--p2--t1--s1--c1
  :parameters ()
  :precondition (and (p11) (p15))
  :effect (and (not (p2)) (not (p3)) (not (p5)) (p14) (not (p15))))
 (:action load-truck--p2--t2--a2--c2
  :parameters ()
  :precondition (and (p9) (p13))
  :effect (and (not (p8))))
 (:action load-truck--p2--t2--s2--c2
  :parameters ()
  :precondition (and (p6) (p8)))
 (:action unload-truck--p1--t1--a1--c1
  :parameters ()
  :precondition (and (p3) (p13))
  :effect (and (not (p11)) (not (p13))))
 (:action unload-truck--p1--t1--s1--c1
  :parameters ()
  :precondition (and (p7) (p12))
  :effect (and (not (p7)) (not (p12))))
 (:action unload-truck--p1--t2--a2--c2
  :parameters ()
  :precondition (and (p7) (p9))
  :effect (and (not (p0)) (p4) (not (p7)) (not (p8)) (not (p12))))
 (:action unload-truck--p1--t2--s2--c2
  :parameters ()
  :precondition (and (p7) (p8))
  :effect (and (not (p4)) (not (p7)) (not (p9)) (p12)))
 (:action unload-truck--p2--t1--a1--c1
  :parameters ()
  :precondition (and (p3) (p14))
  :effect (and (not (p2)) (p5) (not (p11)) (not (p14)) (not (p15))))
 (:action unload-truck--p2--t1--s1--c1
  :parameters ()
  :precondition (and (p11) (p14))
  :effect (and (not (p2)) (not (p3)) (not (p5)) (not (p14)) (p15)))
 (:action unload-truck--p2--t2--a2--c2
  :parameters ()
  :precondition (and (p9)))
 (:action unload-truck--p2--t2--s2--c2
  :parameters ()
  :precondition (and (p6) (p8))
  :effect (and (not (p6))))
 (:action load-plane--p1--jet--a1
  :parameters ()
  :precondition (and (p0) (p1))
  :effect (and (not (p1))))
 (:action load-plane--p1--jet--a2
  :parameters ()
  :precondition (and (p4) (p16))
  :effect (and (p0) (not (p4)) (not (p7)) (not (p10)) (not (p12))))
 (:action load-plane--p2--jet--a1
  :parameters ()
  :precondition (and (p5) (p10))
  :effect (and (p2) (not (p5)) (not (p14)) (not (p15)) (not (p16))))
 (:action load-plane--p2--jet--a2
  :parameters ()
  :precondition (and (p13) (p16))
  :effect (and (p2) (not (p10)) (not (p13))))
 (:action unload-plane--p1--jet--a1
  :parameters ()
  :precondition (and (p0) (p10))
  :effect (and (p1) (not (p4)) (p13) (not (p16))))
 (:action unload-plane--p1--jet--a2
  :parameters ()
  :precondition (and (p0) (p16))
  :effect (and (not (p0)) (p4) (not (p7)) (not (p10)) (not (p12))))
 (:action unload-plane--p2--jet--a1
  :parameters ()
  :precondition (and (p2) (p10))
  :effect (and (not (p2)) (p5) (not (p14)) (not (p15)) (not (p16))))
 (:action unload-plane--p2--jet--a2
  :parameters ()
  :precondition (and (p2) (p16))
  :effect (and (not (p2)) (not (p5)) (not (p10)) (p13) (not (p14))))
)
