/* lease.pml - claimed validity is exclusive, as long as clocks run within their bound.
 *
 * Three nodes, two clients, true time in ticks. Within one lease a node's clock may run a tick fast and a client's a tick slow, which
 * DRIFT covers. Requests and answers take any time. A client claims the lock from its q-th grant on until LEASE - DRIFT ticks of its
 * own clock after it sent the requests.
 *
 * Planted faults, each to be found as a violation:
 * -DREPLY_TIME   validity counts from the last answer
 * -DNO_DRIFT     nothing is taken off for clocks
 * -DREACHABLE    a quorum of the nodes that answered
 * -DPAUSE        the client's clock stands still as long as it likes (a paused virtual machine): what no lease can survive
 */
#define N 3
#define LEASE 4
#ifndef TRIES
#define TRIES 1 /* attempts of each client: more take longer than a minute */
#endif
#ifdef NO_DRIFT
#define DRIFT 0
#else
#define DRIFT 2
#endif
#ifdef REACHABLE
#define ENOUGH(c) (granted(c) * 2 > granted(c) + refused(c))
#else
#define ENOUGH(c) (granted(c) >= 2)
#endif
#define NONE 2
#define AT(c, z) ((c) * N + (z))
#define granted(c) (yes[AT(c, 0)] + yes[AT(c, 1)] + yes[AT(c, 2)])
#define refused(c) (no[AT(c, 0)] + no[AT(c, 1)] + no[AT(c, 2)])

byte owner[N] = NONE;
byte left[N];          /* of the lease, by the node's clock */
bool fast[N];          /* its clock has run fast during this lease */

byte age[2];           /* of the attempt, by the client's clock */
bool slow[2];
bool trying[2], holds[2];
byte tries[2];
bool sent[6], set[6], was_set[6], yes[6], no[6];

inline start(c) {
    age[c] = 0; slow[c] = false; trying[c] = true; tries[c]++;
    sent[AT(c, 0)] = true; sent[AT(c, 1)] = true; sent[AT(c, 2)] = true;
    yes[AT(c, 0)] = false; yes[AT(c, 1)] = false; yes[AT(c, 2)] = false;
    no[AT(c, 0)] = false; no[AT(c, 1)] = false; no[AT(c, 2)] = false
}

/* A request reaches its node whenever it does, and its answer the client. Only then may the client try again. */
proctype Path(byte c; byte z) {
    do
    :: atomic { sent[AT(c, z)] ->
        sent[AT(c, z)] = false;
        if
        :: owner[z] == NONE -> owner[z] = c; left[z] = LEASE; fast[z] = false; was_set[AT(c, z)] = true
        :: else -> was_set[AT(c, z)] = false
        fi;
        set[AT(c, z)] = true }
    :: atomic { set[AT(c, z)] ->
        set[AT(c, z)] = false;
        if
        :: trying[c] && was_set[AT(c, z)] -> yes[AT(c, z)] = true
        :: trying[c] && !was_set[AT(c, z)] -> no[AT(c, z)] = true
        :: else
        fi;
#ifdef REPLY_TIME
        age[c] = 0
#endif
        }
    od
}

#define quiet(c) (!sent[AT(c, 0)] && !sent[AT(c, 1)] && !sent[AT(c, 2)] && !set[AT(c, 0)] && !set[AT(c, 1)] && !set[AT(c, 2)])

proctype Client(byte c) {
    do
    :: atomic { tries[c] < TRIES && !trying[c] && !holds[c] && quiet(c) -> start(c) }
    :: atomic { trying[c] && ENOUGH(c) && age[c] < LEASE - DRIFT -> trying[c] = false; holds[c] = true; assert(!holds[1 - c]) }
    :: atomic { trying[c] -> trying[c] = false } /* gives up; what it set stays until its lease ends */
    :: atomic { holds[c] -> holds[c] = false }   /* stops; the keys stay: the worst case */
    od
}

inline node_ticks(z) {
    if
    :: owner[z] != NONE ->
        left[z]--;
        if
        :: !fast[z] && left[z] > 0 -> left[z]--; fast[z] = true
        :: true
        fi;
        if :: left[z] == 0 -> owner[z] = NONE :: else fi
    :: else
    fi
}

inline client_ticks(c) {
    if
    :: (trying[c] || holds[c]) ->
        if
        :: age[c] < LEASE -> age[c]++
        :: else
        fi;
        if
        :: !slow[c] && age[c] > 0 -> age[c]--; slow[c] = true
#ifdef PAUSE
        :: age[c] > 0 -> age[c]--
#endif
        :: true
        fi;
        if
        :: holds[c] && age[c] >= LEASE - DRIFT -> holds[c] = false
        :: else
        fi
    :: else
    fi
}

proctype Time() {
    do
    :: atomic { node_ticks(0); node_ticks(1); node_ticks(2); client_ticks(0); client_ticks(1) }
    od
}

init {
    atomic {
        run Client(0); run Client(1);
        run Path(0, 0); run Path(0, 1); run Path(0, 2); run Path(1, 0); run Path(1, 1); run Path(1, 2);
        run Time()
    }
}
