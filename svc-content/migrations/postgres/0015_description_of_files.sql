-- expand
ALTER TABLE files ADD COLUMN description TEXT;
