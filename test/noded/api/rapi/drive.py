"""Drives an installation, and everything around it, with Ganeti's own client; prints what it was answered as one JSON object.

Arguments: port, CA file. The password comes from stdin.
"""

import time
import json
import sys

from ganeti.rapi import client as rapi

PORT, CA_FILE = int(sys.argv[1]), sys.argv[2]
PASSWORD = sys.stdin.read()
NAME = "web1.example.com"
answers = {}


def connect(user, password):
    config = rapi.GenericCurlConfig(cafile=CA_FILE, timeout=60)
    return rapi.GanetiRapiClient("127.0.0.1", PORT, user, password, curl_config_fn=config)


def refusal(call, *args, **kwargs):
    try:
        return {"not refused": call(*args, **kwargs)}
    except rapi.GanetiApiError as error:
        return {"code": error.code, "message": str(error)}


def follow(job):
    """Waits as Ganeti's tools do: for each change, to the end."""
    info, serial, lines = None, -1, []
    while True:
        change = writer.WaitForJobChange(job, ["status"], info, serial)
        if change is None:
            continue
        info = change["job_info"]
        for number, _, kind, message in change["log_entries"]:
            serial = max(serial, number)
            lines.append([kind, message])
        if info[0] in rapi.JOB_STATUS_FINALIZED:
            return dict(writer.GetJobStatus(job), lines=lines)


def until_running(job):
    info = None
    while info != ["running"]:
        change = writer.WaitForJobChange(job, ["status"], info, None)
        info = change["job_info"] if change else info


def until_there(name):
    # A job runs before its instance is made: one that is cancelled in between leaves none.
    while name not in reader.GetInstances():
        time.sleep(0.05)


def add(name, os, dry_run=False, **more):
    return writer.CreateInstance(
        "create", name, "file", [{"size": 16}], [], os=os, start=False, ip_check=False,
        name_check=False, wait_for_sync=False, dry_run=dry_run, **more)


writer = connect("writer", PASSWORD)
reader = connect("reader", PASSWORD)
stranger = connect("reader", PASSWORD + "x")

answers["version"] = connect(None, None).GetVersion()
answers["features"] = reader.GetFeatures()
answers["info"] = reader.GetInfo()
answers["os"] = reader.GetOperatingSystems()
answers["nodes"] = reader.GetNodes()
answers["bulk nodes"] = reader.GetNodes(bulk=True)
answers["node"] = reader.GetNode(answers["nodes"][0])
answers["stranger"] = refusal(stranger.GetInstances)
answers["reader writes"] = refusal(reader.DeleteInstance, NAME)
answers["reader submits"] = refusal(reader.GetInstanceInfo, NAME)
answers["reader waits"] = refusal(reader.WaitForJobChange, 1, ["status"], None, None)

parameters = {
    "osparams": {"greeting": "good morning"},
    "osparams_private": {"licence": "PRIVATE-4711"},
    "osparams_secret": {"root_password": "SECRET-0815"},
}
answers["dry run"] = follow(add(NAME, "rapi-os", dry_run=True, **parameters))
answers["after dry run"] = reader.GetInstances()
answers["create"] = follow(add(
    NAME, "rapi-os", tags=["blue"], beparams={"maxmem": 256, "minmem": 256, "vcpus": 2}, **parameters))
answers["instances"] = reader.GetInstances()
answers["bulk instances"] = reader.GetInstances(bulk=True)
answers["instance"] = reader.GetInstance(NAME)
answers["instance info"] = follow(writer.GetInstanceInfo(NAME))
answers["create again"] = follow(add(NAME, "rapi-os", **parameters))

answers["reinstall without secret"] = follow(writer.ReinstallInstance(NAME, no_startup=True))
# The client has no argument for secrets, but the resource takes them.
answers["reinstall"] = follow(writer._SendRequest("POST", "/2/instances/%s/reinstall" % NAME, None, {
    "start": False,
    "osparams": {"greeting": "good evening"},
    "osparams_secret": {"root_password": "SECRET-0816"},
}))
answers["modify"] = follow(writer.ModifyInstance(
    NAME, beparams={"memory": 512}, osparams_private={"licence": "PRIVATE-4712"}))
answers["add tags"] = follow(writer.AddInstanceTags(NAME, ["green", "red"]))
answers["delete tags"] = follow(writer.DeleteInstanceTags(NAME, ["blue"]))
answers["tags"] = reader.GetInstanceTags(NAME)
answers["tag cluster"] = [follow(writer.AddClusterTags(["a", "b"])), follow(writer.DeleteClusterTags(["a"]))]
answers["cluster tags"] = reader.GetClusterTags()
answers["startup dry run"] = follow(writer.StartupInstance(NAME, dry_run=True))
answers["shutdown"] = follow(writer.ShutdownInstance(NAME))
answers["reboot"] = follow(writer.RebootInstance(NAME, reboot_type="soft"))
answers["console"] = refusal(reader.GetInstanceConsole, NAME)
answers["rename"] = follow(writer.RenameInstance(NAME, "web2.example.com"))

fields = ["name", "oper_ram", "nonsense"]
answers["query"] = reader.Query("instance", fields, ["&", ["=", "name", "web2.example.com"], ["!", ["?", "oper_state"]]])
answers["query none"] = reader.Query("instance", fields, ["=[]", "tags", "blue"])
answers["query fields"] = reader.QueryFields("instance", ["name", "nonsense"])
answers["query nodes"] = reader.Query("node", ["name", "role"])
answers["query jobs"] = reader.Query("job", ["id", "status"], ["==", "status", "error"])

slow = add("slow.example.com", "rapi-slow")
until_running(slow)
until_there("slow.example.com")
answers["cancel"] = writer.CancelJob(slow)
answers["canceled"] = follow(slow)
answers["cancel again"] = writer.CancelJob(slow)
answers["jobs"] = reader.GetJobs()
answers["bulk jobs"] = reader.GetJobs(bulk=True)

answers["delete"] = [follow(writer.DeleteInstance(name)) for name in ("web2.example.com", "slow.example.com")]
answers["after delete"] = reader.GetInstances()
answers["no instance"] = refusal(reader.GetInstance, NAME)
answers["no job"] = refusal(reader.GetJobStatus, 4711)
answers["import"] = refusal(writer.CreateInstance, "import", NAME, "file", [], [])
answers["refused"] = refusal(writer.ActivateInstanceDisks, NAME)
print(json.dumps(answers))
