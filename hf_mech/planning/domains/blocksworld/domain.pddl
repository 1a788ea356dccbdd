; Blocks on a table, and a gripper that holds one block at a time.
(define (domain blocksworld)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types block)
  (:predicates
    (on ?upper ?lower - block)
    (ontable ?block - block)
    (clear ?block - block)
    (holding ?block - block)
    (handempty))

  (:action pick-up
    :parameters (?block - block)
    :precondition (and (clear ?block) (ontable ?block) (handempty))
    :effect (and (holding ?block) (not (clear ?block)) (not (ontable ?block)) (not (handempty))))

  (:action put-down
    :parameters (?block - block)
    :precondition (holding ?block)
    :effect (and (clear ?block) (ontable ?block) (handempty) (not (holding ?block))))

  (:action stack
    :parameters (?upper ?lower - block)
    :precondition (and (not (= ?upper ?lower)) (holding ?upper) (clear ?lower))
    :effect (and (on ?upper ?lower) (clear ?upper) (handempty) (not (holding ?upper)) (not (clear ?lower))))

  (:action unstack
    :parameters (?upper ?lower - block)
    :precondition (and (not (= ?upper ?lower)) (on ?upper ?lower) (clear ?upper) (handempty))
    :effect (and (holding ?upper) (clear ?lower) (not (on ?upper ?lower)) (not (clear ?upper)) (not (handempty)))))
