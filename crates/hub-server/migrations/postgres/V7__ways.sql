-- How a device is reached where it was last heard from: 'direct', by the 'hub' that relays, or by 'nobody' else than the hub; '' as long
-- as nobody has looked.
ALTER TABLE devices ADD COLUMN way TEXT COLLATE "C" NOT NULL DEFAULT '';
