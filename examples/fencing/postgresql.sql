-- Writes to PostgreSQL that check a fencing token. The highest token of each resource and its holder are a row of the same
-- database, and are looked at in the transaction of the data.
--
-- The parameters are those of psql: :resource, :token (rl_lock_fence), :holder (what tells this holder from others: rl_lock_token, or
-- better a hash of it), :balance. Every transaction of a holder shows its token first. If fence_show fails, with SQLSTATE RL001,
-- a newer holder has been there: roll back, and stop. All writers must go this way, at READ COMMITTED (the default) or stricter.

-- [schema] once

CREATE TABLE fence (
    resource text PRIMARY KEY,
    token bigint NOT NULL CHECK (token > 0),
    holder text NOT NULL
);

-- Accepts a token that is higher than all before, or equal and of the same holder. The row stays locked until the transaction
-- ends, so that no older holder's write can come between. 0, the token of a lock without a fence, is refused.
CREATE FUNCTION fence_show(the_resource text, the_token bigint, the_holder text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fence AS f (resource, token, holder) VALUES (the_resource, the_token, the_holder)
        ON CONFLICT (resource) DO UPDATE SET token = excluded.token, holder = excluded.holder
        WHERE excluded.token > f.token OR (excluded.token = f.token AND excluded.holder = f.holder);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'fencing token % for % is refused: a newer holder has been here', the_token, the_resource
            USING ERRCODE = 'RL001';
    END IF;
END
$$;

CREATE TABLE account (id text PRIMARY KEY, balance bigint NOT NULL);
INSERT INTO account VALUES ('invoice-42', 100);

-- [begin] first of all, after the lock was taken: show the token, then read

BEGIN;
SELECT fence_show(:'resource', :token, :'holder');
SELECT balance FROM account WHERE id = :'resource';
COMMIT;

-- [write] every write: show the token, then change the data

BEGIN;
SELECT fence_show(:'resource', :token, :'holder');
UPDATE account SET balance = :balance WHERE id = :'resource';
COMMIT;
