/* lease.pml - claimed validity is exclusive, as long as clocks run within their bound.
 *
 * Three nodes, two clients that each try once, true time in ticks. Within one lease a node's clock may run a tick fast and a client's
 * a tick slow, which DRIFT covers exactly. A request reaches its node at any time or never, and a grant's answer the client likewise.
 * A client claims the lock from its q-th grant on until LEASE - DRIFT ticks of its own clock after it sent the requests. It releases
 * nothing: what it set stays until the lease ends.
 *
 * To keep the search small, without loss for the assertion: client 0 is the one that sends first; a refusal is known at once; who
 * claims needs no more answers, and its requests that are still under way are dropped (they could only keep the other one out); and
 * a run ends when the time of one of the two is over, since then no two claims can meet.
 *
 * Planted faults, each to be found as a violation:
 * -DREPLY_TIME   validity counts from the last answer
 * -DNO_DRIFT     nothing is taken off for clocks
 * -DREACHABLE    a quorum of the nodes that answered
 * -DPAUSE        the client's clock stands still as long as it likes (a paused virtual machine): what no lease can survive
 */
#define N 3
#define LEASE 4
#ifdef NO_DRIFT
#define DRIFT 0
#else
#define DRIFT 2
#endif
#define FREE 2 /* no owner */
#define AT(c, z) ((c) * N + (z))
#define HOW_MANY(c, what) ((way[AT(c, 0)] == what) + (way[AT(c, 1)] == what) + (way[AT(c, 2)] == what))
#ifdef REACHABLE
#define ENOUGH(c) (HOW_MANY(c, YES) * 2 > HOW_MANY(c, YES) + HOW_MANY(c, NO))
#else
#define ENOUGH(c) (HOW_MANY(c, YES) >= 2)
#endif

byte owner[N] = FREE;
byte left[N]; /* of the lease, by the node's clock */
bool fast[N]; /* its clock has run fast during this lease */

/* Of a client's request to a node: not under way, sent, granted there, and its answer as the client knows it. */
#define NONE 0
#define SENT 1
#define SET 2
#define YES 3
#define NO 4
byte way[2 * N];

#define IDLE 0
#define TRYING 1
#define HOLDS 2
byte does[2];
byte age[2];  /* of the attempt, by the client's clock */
bool slow[2]; /* its clock has run slow during the attempt */
bool over;

#define ALL(c, what) way[AT(c, 0)] = what; way[AT(c, 1)] = what; way[AT(c, 2)] = what

inline send(c) {
    does[c] = TRYING; age[c] = 0; slow[c] = false;
    ALL(c, SENT)
}

inline reach(c, z) {
    if
    :: owner[z] == FREE -> owner[z] = c; left[z] = LEASE; fast[z] = false; way[AT(c, z)] = SET
    :: else -> way[AT(c, z)] = NO
    fi
}

inline answer(c, z) {
    way[AT(c, z)] = YES;
#ifdef REPLY_TIME
    age[c] = 0;
#endif
    if
    :: ENOUGH(c) -> does[c] = HOLDS; ALL(c, NONE)
    :: else
    fi
}

inline node_ticks(z) {
    if
    :: owner[z] != FREE ->
        left[z]--;
        if
        :: !fast[z] && left[z] > 0 -> left[z]--; fast[z] = true
        :: true
        fi;
        if
        :: left[z] == 0 -> owner[z] = FREE; fast[z] = false
        :: else
        fi
    :: else
    fi
}

inline client_ticks(c) {
    if
    :: does[c] != IDLE ->
        if
        :: age[c]++
        :: !slow[c] -> slow[c] = true
#ifdef PAUSE
        :: true
#endif
        fi;
        if
        :: age[c] >= LEASE - DRIFT -> over = true
        :: else
        fi
    :: else
    fi
}

#define REQUEST(c, z) \
    :: atomic { !over && way[AT(c, z)] == SENT -> reach(c, z) } \
    :: atomic { !over && way[AT(c, z)] == SET -> answer(c, z); assert(does[0] != HOLDS || does[1] != HOLDS) }

active proctype Run() {
    atomic { send(0) }
    do
    :: atomic { !over && does[1] == IDLE -> send(1) }
    REQUEST(0, 0)
    REQUEST(0, 1)
    REQUEST(0, 2)
    REQUEST(1, 0)
    REQUEST(1, 1)
    REQUEST(1, 2)
    :: atomic { !over -> node_ticks(0); node_ticks(1); node_ticks(2); client_ticks(0); client_ticks(1) }
    :: over -> break
    od
}
