; The card game FreeCell: columns, free cells, and a home for each suit. (successor ?m ?n): m is n + 1.
(define (domain freecell)
  (:requirements :strips :typing)
  (:types card num suit-type)
  (:predicates
    (on ?card ?below - card)
    (incell ?card - card)
    (clear ?card - card)
    (cellspace ?number - num)
    (colspace ?number - num)
    (home ?card - card)
    (bottomcol ?card - card)
    (canstack ?card ?below - card)
    (value ?card - card ?number - num)
    (successor ?more ?less - num)
    (suit ?card - card ?suit - suit-type))

  (:action move
    :parameters (?card ?old ?new - card)
    :precondition (and (clear ?card) (clear ?new) (canstack ?card ?new) (on ?card ?old))
    :effect (and (on ?card ?new) (clear ?old) (not (on ?card ?old)) (not (clear ?new))))

  (:action move-b
    :parameters (?card ?new - card ?cols ?more-cols - num)
    :precondition (and (clear ?card) (bottomcol ?card) (clear ?new) (canstack ?card ?new) (colspace ?cols)
                       (successor ?more-cols ?cols))
    :effect (and (on ?card ?new) (colspace ?more-cols) (not (bottomcol ?card)) (not (clear ?new))
                 (not (colspace ?cols))))

  (:action sendtofree
    :parameters (?card ?old - card ?cells ?fewer-cells - num)
    :precondition (and (clear ?card) (on ?card ?old) (cellspace ?cells) (successor ?cells ?fewer-cells))
    :effect (and (incell ?card) (clear ?old) (cellspace ?fewer-cells) (not (on ?card ?old)) (not (clear ?card))
                 (not (cellspace ?cells))))

  (:action sendtofree-b
    :parameters (?card - card ?cells ?fewer-cells ?cols ?more-cols - num)
    :precondition (and (clear ?card) (bottomcol ?card) (cellspace ?cells) (successor ?cells ?fewer-cells)
                       (colspace ?cols) (successor ?more-cols ?cols))
    :effect (and (incell ?card) (colspace ?more-cols) (cellspace ?fewer-cells) (not (bottomcol ?card))
                 (not (clear ?card)) (not (colspace ?cols)) (not (cellspace ?cells))))

  (:action sendtonewcol
    :parameters (?card ?old - card ?cols ?fewer-cols - num)
    :precondition (and (clear ?card) (colspace ?cols) (successor ?cols ?fewer-cols) (on ?card ?old))
    :effect (and (bottomcol ?card) (clear ?old) (colspace ?fewer-cols) (not (on ?card ?old)) (not (colspace ?cols))))

  (:action sendtohome
    :parameters (?card ?old - card ?suit - suit-type ?value - num ?below - card ?less - num)
    :precondition (and (clear ?card) (on ?card ?old) (home ?below) (suit ?card ?suit) (suit ?below ?suit)
                       (value ?card ?value) (value ?below ?less) (successor ?value ?less))
    :effect (and (home ?card) (clear ?old) (not (on ?card ?old)) (not (home ?below)) (not (clear ?card))))

  (:action sendtohome-b
    :parameters (?card - card ?suit - suit-type ?value - num ?below - card ?less ?cols ?more-cols - num)
    :precondition (and (clear ?card) (bottomcol ?card) (home ?below) (suit ?card ?suit) (suit ?below ?suit)
                       (value ?card ?value) (value ?below ?less) (successor ?value ?less) (colspace ?cols)
                       (successor ?more-cols ?cols))
    :effect (and (home ?card) (colspace ?more-cols) (not (home ?below)) (not (clear ?card)) (not (bottomcol ?card))
                 (not (colspace ?cols))))

  (:action homefromfreecell
    :parameters (?card - card ?suit - suit-type ?value - num ?below - card ?less ?cells ?more-cells - num)
    :precondition (and (incell ?card) (home ?below) (suit ?card ?suit) (suit ?below ?suit) (value ?card ?value)
                       (value ?below ?less) (successor ?value ?less) (cellspace ?cells)
                       (successor ?more-cells ?cells))
    :effect (and (home ?card) (cellspace ?more-cells) (not (incell ?card)) (not (cellspace ?cells))
                 (not (home ?below))))

  (:action colfromfreecell
    :parameters (?card ?new - card ?cells ?more-cells - num)
    :precondition (and (incell ?card) (clear ?new) (canstack ?card ?new) (cellspace ?cells)
                       (successor ?more-cells ?cells))
    :effect (and (cellspace ?more-cells) (clear ?card) (on ?card ?new) (not (incell ?card)) (not (cellspace ?cells))
                 (not (clear ?new))))

  (:action newcolfromfreecell
    :parameters (?card - card ?cols ?fewer-cols ?cells ?more-cells - num)
    :precondition (and (incell ?card) (colspace ?cols) (cellspace ?cells) (successor ?cols ?fewer-cols)
                       (successor ?more-cells ?cells))
    :effect (and (bottomcol ?card) (clear ?card) (colspace ?fewer-cols) (cellspace ?more-cells) (not (incell ?card))
                 (not (colspace ?cols)) (not (cellspace ?cells)))))
