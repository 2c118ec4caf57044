-- How many calls a grant allows; 0 is any number.
ALTER TABLE grants ADD COLUMN max_uses INTEGER NOT NULL DEFAULT 0;
