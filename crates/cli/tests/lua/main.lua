-- What a machine can do, a function for each.
local tenure = require "tenure"
local language = require "language"
local other = require "below.other"
local log, tree, events, timers = tenure.log, tenure.tree, tenure.events, tenure.timers

local starts = 0

function entry()
  starts = starts + 1
  -- The pretended device has neither events nor timers.
  local ok, failure = pcall(events.subscribe, "device.temperature", all, "latest-only")
  log.warning(ok, failure, failure.code)
  print("started", starts, 1.5, nil)
end

function all()
  tree.set("a.one", 1)
  tree.set("a.two", "two")
  local names = table.concat(tree.list("a"), " ")
  local gone = tree.remove("a")
  local told = tenure.call("friend", "tell", "me")
  local nothing = tenure.call("friend", "nothing")
  return table.concat({ names, gone, told, tostring(nothing), tostring(tree.get("a.one")), #tree.list("b") }, " ")
end

function absent()
  local ok, failure = pcall(function() tenure.call("nobody", "x") end)
  return failure.code .. " " .. failure.message
end

function various()
  return table.concat({
    #tenure.public_key(), #tenure.caller(), #tenure.random(5), tenure.uptime_us(), tostring(tenure.unix_time_s()),
    tostring(tenure.resolve("x")), #tenure.peers(), tenure.budget_left(5) > 0 and "left" or "none",
  }, " ")
end

function queued()
  return tenure.queue { name = "all", parameter = "p", on_success = all, on_failure = "absent" }
end

function kind(parameter) return type(parameter) .. " " .. tostring(parameter and #parameter) end
function twice() tenure.reply("first") return "second" end
function number() return 2.5 end
function truth() return true end
function none() end
function shared() return other.name() .. " " .. tostring(require "below.other" == other) end
function language_() return language() end

function table_() return {} end
function nothing() local lamp return lamp.lit end
function unanswered() tenure.call("nobody", "x") end
function custom() error("in words") end
function object() error({ code = 7 }) end
function nameless() timers.every(1000, function() end) end
function dynamic() return load("return 1") end
function missing() require("ab" .. "sent") end
function recurse() return 1 + recurse() end
function hold() local kept = {} while true do kept[#kept + 1] = ("y"):rep(100) .. #kept end end
local function inner(left)
  if left == 0 then error("deep") end
  return 1 + inner(left - 1)
end
function deep() local sum = inner(2) return sum end
function from_other() other.fail() end
function nest()
  local function again(left)
    return (("a"):gsub("a", function() return left == 0 and "z" or again(left - 1) end))
  end
  return again(100)
end
function grow()
  local length = 0
  for round = 1, 3000 do length = length + #(("x"):rep(round % 300) .. round) end
  return length
end
