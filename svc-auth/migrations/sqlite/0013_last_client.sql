-- expand
-- With what a token was last used, as the program names itself, and by which door it came: for people to tell tokens apart.
ALTER TABLE tokens ADD COLUMN last_client TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN last_channel TEXT NOT NULL DEFAULT '';
