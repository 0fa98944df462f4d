-- Check values: numbers made of a row's other columns, tested when it is read. Null in rows that were last written before there
-- were any.
ALTER TABLE leadership ADD COLUMN check_value INTEGER;
ALTER TABLE workflows ADD COLUMN check_value INTEGER;
-- What is written whenever slots are planned or runs begin has one of its own.
ALTER TABLE workflows ADD COLUMN counts_check INTEGER;
ALTER TABLE definitions ADD COLUMN check_value INTEGER;
ALTER TABLE slots ADD COLUMN check_value INTEGER;
ALTER TABLE runs ADD COLUMN check_value INTEGER;
-- Of what is written once, when the run is dispatched.
ALTER TABLE runs ADD COLUMN origin_check INTEGER;
ALTER TABLE events ADD COLUMN check_value INTEGER;
ALTER TABLE backfills ADD COLUMN check_value INTEGER;
ALTER TABLE registers ADD COLUMN check_value INTEGER;
ALTER TABLE facts ADD COLUMN check_value INTEGER;
