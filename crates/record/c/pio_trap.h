/* Calls of io_uring_enter by instructions of the program's own. */
#ifndef PIO_TRAP_H
#define PIO_TRAP_H

#pragma GCC visibility push(hidden)

/* Lets this thread's calls be seen, if that is possible. Not where the program uses the signal SIGSYS itself. */
void pio_trap_ring_calls(void);

#pragma GCC visibility pop

#endif
