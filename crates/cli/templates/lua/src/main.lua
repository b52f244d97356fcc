-- The machine `{{name}}`: greets whoever calls it, and counts how often it did.

local tenure = require "tenure"
local log, tree = tenure.log, tenure.tree

-- Runs once when the machine starts.
function entry()
  log.info("{{name}} has started")
end

-- tenure call {{name}} greet Ada
function greet(whom)
  local count = tonumber(tree.get("greetings")) + 1
  tree.set("greetings", count)
  return ("Hello, %s! You are number %d."):format(whom or "world", count)
end
