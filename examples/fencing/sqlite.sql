-- Writes to SQLite (3.24 or later) that check a fencing token. The highest token of each resource and its holder are a row of the same
-- database, and are looked at in the transaction of the data.
--
-- The parameters are :resource, :token (rl_lock_fence), :holder (what tells this holder from others: rl_lock_token, or better
-- a hash of it), :balance; bind :token as an integer. A read without a row, or a write that changed none (sqlite3_changes), means that
-- a newer holder has been there: stop. All writers must go this way.

-- [schema] once

CREATE TABLE fence (
    resource TEXT PRIMARY KEY NOT NULL,
    token INTEGER NOT NULL CHECK (typeof(token) = 'integer' AND token > 0), -- 0: a lock without a fence
    holder TEXT NOT NULL
);

CREATE TABLE account (id TEXT PRIMARY KEY NOT NULL, balance INTEGER NOT NULL);
INSERT INTO account VALUES ('invoice-42', 100);

-- [begin] first of all, after the lock was taken: show the token (it is accepted if it is higher than all before, or equal and of
-- the same holder), then read

BEGIN IMMEDIATE;
INSERT INTO fence (resource, token, holder) VALUES (:resource, :token, :holder)
    ON CONFLICT (resource) DO UPDATE SET token = excluded.token, holder = excluded.holder
    WHERE excluded.token > token OR (excluded.token = token AND excluded.holder = holder);
SELECT balance FROM account WHERE id = :resource
    AND EXISTS (SELECT 1 FROM fence WHERE resource = :resource AND token = :token AND holder = :holder);
COMMIT;

-- [write] every write: show the token, then change the data if it was accepted

BEGIN IMMEDIATE;
INSERT INTO fence (resource, token, holder) VALUES (:resource, :token, :holder)
    ON CONFLICT (resource) DO UPDATE SET token = excluded.token, holder = excluded.holder
    WHERE excluded.token > token OR (excluded.token = token AND excluded.holder = holder);
UPDATE account SET balance = :balance WHERE id = :resource
    AND EXISTS (SELECT 1 FROM fence WHERE resource = :resource AND token = :token AND holder = :holder);
SELECT 'written' WHERE changes() > 0;
COMMIT;
