-- Health of a NativeTransfer for Argo CD. Only what Lua 5.1 offers without libraries is used: that is all that a script from argocd-cm gets.
-- Argo CD itself answers for a resource that is being deleted (Progressing, "Pending deletion"); the answer for it here is
-- what kubectl plugins and other users of these scripts see.

local function condition(name)
  for _, item in ipairs(obj.status.conditions or {}) do
    if item.type == name then
      return item
    end
  end
  return nil
end

-- True if the condition is there with this status.
local function is(name, status)
  local item = condition(name)
  return item ~= nil and item.status == status
end

-- What the condition says: "Reason: message", either of them alone, or what is given.
local function words(name, otherwise)
  local item = condition(name)
  local reason = item and item.reason or ""
  local message = item and item.message or ""
  if reason ~= "" and message ~= "" then
    return reason .. ": " .. message
  end
  if reason ~= "" or message ~= "" then
    return reason .. message
  end
  return otherwise
end

local function health(status, message)
  return { status = status, message = message }
end

if obj.status == nil or obj.status.observedGeneration == nil then
  return health("Progressing", "The operator has not seen this transfer yet")
end
-- A status of an older spec says nothing about this one.
local generation = obj.metadata and obj.metadata.generation or 0
if obj.status.observedGeneration < generation then
  return health("Progressing", "The operator has not seen the latest change yet")
end

local phase = obj.status.phase or "Planned"
local deleting = obj.metadata ~= nil and obj.metadata.deletionTimestamp ~= nil

if deleting and is("DeletionBlocked", "True") then
  return health("Degraded", words("DeletionBlocked", "Deletion waits until nothing is held"))
end
-- Nobody knows whether the rows are in the table: that is never shown as healthy, nor as work in progress.
if is("Published", "Unknown") or phase == "OutcomeUnknown" then
  return health("Degraded", words("Published", "Nobody knows yet whether the publication was committed"))
end
if is("Stalled", "True") then
  return health("Degraded", words("Stalled", "It does not go on by itself"))
end
if is("Accepted", "False") then
  return health("Degraded", words("Accepted", "The manifest is refused"))
end
if deleting then
  return health("Progressing", words("Ready", "It is being deleted"))
end
if is("Ready", "True") then
  return health("Healthy", words("Ready", "The rows are in the target table"))
end
if phase == "Failed" or phase == "CustodyUnknown" then
  return health("Degraded", words("Ready", "The run ended in " .. phase))
end
if is("Suspended", "True") then
  return health("Suspended", words("Suspended", "The extraction is suspended"))
end
return health("Progressing", words("Ready", phase))
