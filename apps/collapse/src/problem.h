/* What the box holds at first. */
#ifndef COLLAPSE_PROBLEM_H
#define COLLAPSE_PROBLEM_H

#include "gas.h"

typedef enum { PROBLEM_COLLAPSE, PROBLEM_SOD, PROBLEM_JEANS, PROBLEM_ENTROPY, PROBLEMS } Problem;

/* What a problem is called on the command line, what it uses unless told otherwise, and one line about it. */
typedef struct {
    const char *name;
    double gamma;
    double gravity; /* the constant G */
    double sound_speed;
    const char *about;
} ProblemTraits;

extern const ProblemTraits problem_traits[PROBLEMS];

/*
 * Fills the gas. Plane problems vary along the mesh's longest axis, the first of equals. `gravity` and `sound_speed`
 * are used where problem_traits gives them.
 */
void problem_fill(Problem problem, Gas *gas, double gravity, double sound_speed);

#endif
