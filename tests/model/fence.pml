/* fence.pml - the quorum fence: tokens are unique and ordered, whatever the pauses, delays and expiries.
 *
 * Three nodes, attempts that each run once. There is no time: a key may vanish at any step (its lease ended, or a release came), a
 * request may be carried out at any step after it was sent or never, an answer may arrive at any step after that or never. So a
 * holder may be stopped for any time at any point. What is left is what the fence must hold without clocks.
 *
 * -DFORGET   one node may lose its counter and key. Its clock then seeds the counter above every token so far (condition F).
 * Planted faults, each to be found as a violation:
 * -DNO_CONFIRM      success at the q-th grant with the highest counter
 * -DNO_COMPARE      confirm raises the counter without looking at the key
 * -DLATE_COUNTS     a late grant with a counter beyond the token counts
 * -DEARLY_TOP_UP    a node that refused is set with our token before the token is confirmed, and counts
 * -DNO_SEED         (with FORGET) a lost counter starts from 1
 * -DSKEW            (with FORGET) the seeding clock is behind: it gives a value that was given before
 * -DBOTH            the assertion that no two attempts believe at once that they hold: false, and found (why a fence is needed)
 */
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#define N 3
#define Q 2
#define NONE 255

byte key[N] = NONE;     /* whose token the lock key holds */
byte count[N];          /* the fence counter */
byte highest;           /* the highest counter ever given: what an honest clock is beyond */
bool forgot;            /* one node has forgotten, once */

/* Of attempt a on node z, at a * N + z. */
byte grant[ATTEMPTS * N];      /* the counter as granted, carried out on the node; 0 = not (yet) */
bool asked[ATTEMPTS * N];      /* the grant was carried out or refused */
byte seen[ATTEMPTS * N];       /* the grant as the client knows it */
bool confirmed[ATTEMPTS * N];  /* carried out on the node */
bool counts[ATTEMPTS * N];     /* as the client knows it */

byte token[ATTEMPTS];          /* fixed at the q-th grant; 0 = not yet */
bool begun[ATTEMPTS], won[ATTEMPTS], believes[ATTEMPTS];
byte before[ATTEMPTS];         /* bit b: attempt b had won when this one began */

/* The resource: it refuses a token lower than the highest it has seen. */
byte stored;                   /* the highest token */
byte writer = NONE;

#define AT(a, z) ((a) * N + (z))
#define KNOWN(a) ((seen[AT(a, 0)] > 0) + (seen[AT(a, 1)] > 0) + (seen[AT(a, 2)] > 0))
#define CONFIRMED(a) (counts[AT(a, 0)] + counts[AT(a, 1)] + counts[AT(a, 2)])

inline max_seen(a) {
    token[a] = seen[AT(a, 0)];
    if :: seen[AT(a, 1)] > token[a] -> token[a] = seen[AT(a, 1)] :: else fi;
    if :: seen[AT(a, 2)] > token[a] -> token[a] = seen[AT(a, 2)] :: else fi
}

inline raise(z, to) {
    if :: count[z] < to -> count[z] = to :: else fi;
    if :: count[z] > highest -> highest = count[z] :: else fi
}

/* One attempt on one node: the grant is carried out, and its answer arrives, whenever it does. */
proctype Request(byte a; byte z) {
    atomic {
        (begun[a] && !asked[AT(a, z)]) ->
        asked[AT(a, z)] = true;
        if
        :: key[z] == NONE ->
            if
            :: count[z] == 0 && forgot ->
#ifdef NO_SEED
                count[z] = 1
#else
#ifdef SKEW
                count[z] = highest
#else
                count[z] = highest + 1
#endif
#endif
            :: else -> count[z]++
            fi;
            raise(z, count[z]);
            key[z] = a;
            grant[AT(a, z)] = count[z]
        :: else ->
#ifdef EARLY_TOP_UP
            (key[z] == NONE || won[a] || token[a] > 0) ->
            if
            :: key[z] == NONE && token[a] > 0 && !won[a] -> raise(z, token[a]); key[z] = a; counts[AT(a, z)] = true
            :: else
            fi
#else
            skip
#endif
        fi
    }
    atomic { /* the answer, unless the client has won without it */
        (grant[AT(a, z)] > 0 && !won[a]) ->
        seen[AT(a, z)] = grant[AT(a, z)];
        if
        :: token[a] == 0 && KNOWN(a) >= Q ->
            max_seen(a);
#ifdef NO_CONFIRM
            counts[AT(a, 0)] = seen[AT(a, 0)] > 0; counts[AT(a, 1)] = seen[AT(a, 1)] > 0; counts[AT(a, 2)] = seen[AT(a, 2)] > 0
#else
            counts[AT(a, 0)] = seen[AT(a, 0)] == token[a]; counts[AT(a, 1)] = seen[AT(a, 1)] == token[a];
            counts[AT(a, 2)] = seen[AT(a, 2)] == token[a]
#endif
        :: token[a] > 0 && seen[AT(a, z)] == token[a] -> counts[AT(a, z)] = true
#ifdef LATE_COUNTS
        :: token[a] > 0 && seen[AT(a, z)] > token[a] -> counts[AT(a, z)] = true
#endif
        :: else
        fi
    }
    atomic { /* the confirmation, carried out on the node ... */
        (token[a] > 0 && seen[AT(a, z)] > 0 && seen[AT(a, z)] < token[a]) ->
#ifdef NO_COMPARE
        raise(z, token[a]); confirmed[AT(a, z)] = true
#else
        if
        :: key[z] == a -> raise(z, token[a]); confirmed[AT(a, z)] = true
        :: else
        fi
#endif
    }
    atomic { (confirmed[AT(a, z)]) -> counts[AT(a, z)] = true } /* ... and its answer */
}

proctype Client(byte a) {
    byte b;
    atomic {
        begun[a] = true;
        b = 0;
        do
        :: b < ATTEMPTS -> if :: won[b] -> before[a] = before[a] | (1 << b) :: else fi; b++
        :: else -> break
        od
    }
    atomic {
        (token[a] > 0 && CONFIRMED(a) >= Q) ->
        won[a] = true;
        believes[a] = true;
        b = 0;
        do
        :: b < ATTEMPTS ->
            if
            :: b != a && won[b] ->
                assert(token[a] != token[b]);
                assert(!(before[a] & (1 << b)) || token[b] < token[a]);
                assert(!(before[b] & (1 << a)) || token[a] < token[b])
            :: else
            fi;
#ifdef BOTH
            assert(b == a || !believes[b]);
#endif
            b++
        :: else -> break
        od
    }
    do /* writes, however late; until it stops believing */
    :: atomic { (believes[a]) ->
        if
        :: token[a] > stored || (token[a] == stored && writer == a) ->
            assert(writer == NONE || writer == a || !(before[writer] & (1 << a))); /* the resource never goes backwards */
            stored = token[a];
            writer = a
        :: else
        fi }
    :: believes[a] = false; break
    od
}

/* Leases end, releases come, and a node may forget: at any step. */
proctype World() {
    byte z;
    do
    :: atomic { key[0] != NONE -> key[0] = NONE }
    :: atomic { key[1] != NONE -> key[1] = NONE }
    :: atomic { key[2] != NONE -> key[2] = NONE }
#ifdef FORGET
    :: atomic { !forgot && count[0] > 0 -> forgot = true; count[0] = 0; key[0] = NONE }
#endif
    od
}

init {
    atomic {
        byte a = 0, z;
        do
        :: a < ATTEMPTS ->
            run Client(a);
            z = 0;
            do :: z < N -> run Request(a, z); z++ :: else -> break od;
            a++
        :: else -> break
        od;
        run World()
    }
}
