-- An alarm of a rule may be on the hub itself, with no device: one for each owner.
DROP INDEX rule_alarms_open;
CREATE UNIQUE INDEX rule_alarms_open ON rule_alarms (rule, device) WHERE state <> 'over' AND device <> '';
CREATE UNIQUE INDEX rule_alarms_on_the_hub ON rule_alarms (rule, owner) WHERE state <> 'over' AND device = '';
-- Rules ask for those that aren't over, whatever they are on.
CREATE INDEX rule_alarms_not_over ON rule_alarms (rule, device) WHERE state <> 'over';
