"""Calls each public method of Ganeti's client and prints the outcomes by method as one JSON object.

Arguments: port, CA file. The password comes from stdin. An outcome is `answer`, a `job` with its
status and result, or the `code` and `reason` of the client's exception. `methods` are the methods
that the client has. `defaults` are the outcomes of dry runs, by opcode, whose body has all of
Ganeti's parameters at their defaults.
"""

import inspect
import json
import sys

from ganeti import ht, opcodes
from ganeti.rapi import client as rapi

PORT, CA_FILE = int(sys.argv[1]), sys.argv[2]
CONFIG = rapi.GenericCurlConfig(cafile=CA_FILE, timeout=60)
c = rapi.GanetiRapiClient("127.0.0.1", PORT, "writer", sys.stdin.read(), curl_config_fn=CONFIG)
WEB, DB, NODE, NET = "web1.example.com", "db1.example.com", "node1.example.com", "lan"
ARGUMENTS = ("file", [{"size": "16M"}], [])


class Job:
    """The id of a job, which `outcome_of` waits for."""
    def __init__(self, job_id):
        self.id = job_id


CALLS = {
    # The cluster.
    "GetVersion": lambda: c.GetVersion(),
    "GetFeatures": lambda: c.GetFeatures(),
    "GetInfo": lambda: c.GetInfo(),
    "GetOperatingSystems": lambda: c.GetOperatingSystems(),
    "ModifyCluster": lambda: c.ModifyCluster(maintain_node_health=False),
    "RedistributeConfig": lambda: c.RedistributeConfig(),
    "AddClusterTags": lambda: Job(c.AddClusterTags(["blue", "red"])),
    "DeleteClusterTags": lambda: Job(c.DeleteClusterTags(["red"])),
    "GetClusterTags": lambda: c.GetClusterTags(),
    # Networks.
    "CreateNetwork": lambda: Job(c.CreateNetwork(NET, "10.9.0.0/24", gateway="10.9.0.1", tags="a")),
    "ModifyNetwork": lambda: Job(c.ModifyNetwork(NET, add_reserved_ips=["10.9.0.7"])),
    "GetNetworks": lambda: c.GetNetworks(),
    "GetNetwork": lambda: c.GetNetwork(NET),
    "AddNetworkTags": lambda: Job(c.AddNetworkTags(NET, ["b"])),
    "DeleteNetworkTags": lambda: Job(c.DeleteNetworkTags(NET, ["a"])),
    "GetNetworkTags": lambda: c.GetNetworkTags(NET),
    "ConnectNetwork": lambda: Job(c.ConnectNetwork(NET, "default", "bridged", "br0")),
    "DisconnectNetwork": lambda: Job(c.DisconnectNetwork(NET, "default")),
    "DeleteNetwork": lambda: Job(c.DeleteNetwork(NET)),
    # Instances.
    "InstanceAllocation": lambda: c.InstanceAllocation("create", WEB, *ARGUMENTS, os="rapi-os"),
    "InstancesMultiAlloc": lambda: c.InstancesMultiAlloc([]),
    "CreateInstance": lambda: Job(c.CreateInstance(
        "create", WEB, *ARGUMENTS, os="rapi-os", start=False, iallocator="hail", snode=None,
        group_name=None, beparams={"memory": 256, "minmem": 256, "maxmem": 256, "vcpus": 1})),
    "GetInstances": lambda: c.GetInstances(),
    "GetInstance": lambda: c.GetInstance(WEB),
    "GetInstanceInfo": lambda: Job(c.GetInstanceInfo(WEB, static=True)),
    "ModifyInstance": lambda: Job(c.ModifyInstance(WEB, beparams={"vcpus": 2})),
    "AddInstanceTags": lambda: Job(c.AddInstanceTags(WEB, ["blue", "red"])),
    "DeleteInstanceTags": lambda: Job(c.DeleteInstanceTags(WEB, ["red"])),
    "GetInstanceTags": lambda: c.GetInstanceTags(WEB),
    "GrowInstanceDisk": lambda: Job(c.GrowInstanceDisk(WEB, 0, 16, wait_for_sync=True)),
    "ReinstallInstance": lambda: Job(c.ReinstallInstance(WEB, os="rapi-os", no_startup=True)),
    "StartupInstance": lambda: Job(c.StartupInstance(WEB, dry_run=True, no_remember=True)),
    "ShutdownInstance": lambda: Job(c.ShutdownInstance(WEB, timeout=10)),
    "RebootInstance": lambda: Job(c.RebootInstance(WEB, reboot_type="hard", ignore_secondaries=False)),
    "GetInstanceConsole": lambda: c.GetInstanceConsole(WEB),
    "MigrateInstance": lambda: Job(c.MigrateInstance(WEB, mode="live")),
    "FailoverInstance": lambda: Job(c.FailoverInstance(WEB, ignore_consistency=True)),
    "PrepareExport": lambda: c.PrepareExport(WEB, "remote"),
    "ExportInstance": lambda: Job(c.ExportInstance(WEB, "local", NODE, shutdown=True)),
    "ActivateInstanceDisks": lambda: c.ActivateInstanceDisks(WEB),
    "DeactivateInstanceDisks": lambda: c.DeactivateInstanceDisks(WEB),
    "RecreateInstanceDisks": lambda: c.RecreateInstanceDisks(WEB),
    "ReplaceInstanceDisks": lambda: c.ReplaceInstanceDisks(WEB),
    "RenameInstance": lambda: Job(c.RenameInstance(WEB, DB, ip_check=False, name_check=False)),
    "DeleteInstance": lambda: Job(c.DeleteInstance(DB, shutdown_timeout=10)),
    # Jobs.
    "GetJobs": lambda: c.GetJobs(),
    "GetJobStatus": lambda: c.GetJobStatus(1),
    "WaitForJobCompletion": lambda: c.WaitForJobCompletion(1),
    "WaitForJobChange": lambda: c.WaitForJobChange(1, ["status"], None, None),
    "CancelJob": lambda: c.CancelJob(1),
    # Nodes.
    "GetNodes": lambda: c.GetNodes(),
    "GetNode": lambda: c.GetNode(NODE),
    "ModifyNode": lambda: Job(c.ModifyNode(NODE, drained=True)),
    "SetNodeRole": lambda: Job(c.SetNodeRole(NODE, "master-candidate", auto_promote=True)),
    "GetNodeRole": lambda: c.GetNodeRole(NODE),
    "EvacuateNode": lambda: c.EvacuateNode(NODE, mode="primary-only"),
    "MigrateNode": lambda: c.MigrateNode(NODE, target_node="node2.example.com"),
    "PowercycleNode": lambda: c.PowercycleNode(NODE),
    "GetNodeStorageUnits": lambda: c.GetNodeStorageUnits(NODE, "file", "name"),
    "ModifyNodeStorageUnits": lambda: c.ModifyNodeStorageUnits(NODE, "file", "a", allocatable=True),
    "RepairNodeStorageUnits": lambda: c.RepairNodeStorageUnits(NODE, "file", "a"),
    "GetNodeTags": lambda: c.GetNodeTags(NODE),
    "AddNodeTags": lambda: c.AddNodeTags(NODE, ["a"]),
    "DeleteNodeTags": lambda: c.DeleteNodeTags(NODE, ["a"]),
    # Node groups.
    "GetGroups": lambda: c.GetGroups(),
    "GetGroup": lambda: c.GetGroup("default"),
    "GetGroupTags": lambda: c.GetGroupTags("default"),
    "CreateGroup": lambda: c.CreateGroup("other"),
    "ModifyGroup": lambda: c.ModifyGroup("default", alloc_policy="preferred"),
    "DeleteGroup": lambda: c.DeleteGroup("default"),
    "RenameGroup": lambda: c.RenameGroup("default", "other"),
    "AssignGroupNodes": lambda: c.AssignGroupNodes("default", [NODE]),
    "AddGroupTags": lambda: c.AddGroupTags("default", ["a"]),
    "DeleteGroupTags": lambda: c.DeleteGroupTags("default", ["a"]),
    # Queries and filters.
    "Query": lambda: c.Query("node", ["name"], ["=", "name", NODE]),
    "QueryFields": lambda: c.QueryFields("group", ["name"]),
    "GetFilters": lambda: c.GetFilters(),
    "GetFilter": lambda: c.GetFilter("a"),
    "AddFilter": lambda: c.AddFilter(1, [], "REJECT"),
    "ReplaceFilter": lambda: c.ReplaceFilter("a", 1, [], "REJECT"),
    "DeleteFilter": lambda: c.DeleteFilter("a"),
}


# Method, path and required parameters of the request that becomes an opcode.
REQUESTS = {
    "OpInstanceCreate": ("POST", "/2/instances", {
        "__version__": 1, "mode": "create", "instance_name": WEB, "disk_template": "diskless",
        "disks": [], "nics": []}),
    "OpInstanceReinstall": ("POST", "/2/instances/%s/reinstall" % WEB, {}),
    "OpInstanceSetParams": ("PUT", "/2/instances/%s/modify" % WEB, {}),
    "OpInstanceRemove": ("DELETE", "/2/instances/%s" % WEB, {}),
    "OpInstanceShutdown": ("PUT", "/2/instances/%s/shutdown" % WEB, {}),
    "OpInstanceStartup": ("PUT", "/2/instances/%s/startup" % WEB, {}),
    "OpInstanceReboot": ("POST", "/2/instances/%s/reboot" % WEB, {}),
    "OpInstanceRename": ("PUT", "/2/instances/%s/rename" % WEB, {"new_name": DB}),
    "OpInstanceMigrate": ("PUT", "/2/instances/%s/migrate" % WEB, {}),
    "OpInstanceFailover": ("PUT", "/2/instances/%s/failover" % WEB, {}),
    "OpInstanceGrowDisk": ("POST", "/2/instances/%s/disk/0/grow" % WEB, {"amount": 16}),
    "OpNetworkAdd": ("POST", "/2/networks", {"network_name": NET, "network": "10.9.0.0/24"}),
    "OpNetworkSetParams": ("PUT", "/2/networks/%s/modify" % NET, {}),
    "OpNetworkConnect": ("PUT", "/2/networks/%s/connect" % NET, {
        "group_name": "default", "network_mode": "bridged", "network_link": "br0"}),
    "OpNetworkDisconnect": ("PUT", "/2/networks/%s/disconnect" % NET, {"group_name": "default"}),
    "OpNodeSetParams": ("POST", "/2/nodes/%s/modify" % NODE, {"drained": False}),
}
# Parameters that the path has.
NAMES = ("instance_name", "network_name", "node_name", "disk", "reboot_type")


def send_defaults(opcode):
    method, path, required = REQUESTS[opcode]
    body = {}
    for name, default, _, _ in getattr(opcodes, opcode).GetAllParams():
        if default is not ht.NoDefault and name not in NAMES:
            body[name] = default() if callable(default) else default
    body.update(required)
    return c._SendRequest(method, path, [("dry-run", 1)], body)


def outcome_of(call):
    try:
        answer = call()
        if not isinstance(answer, Job):
            return {"answer": answer}
        c.WaitForJobCompletion(answer.id, period=0.1)
        job = c.GetJobStatus(answer.id)
        return {"job": job["status"], "result": job["opresult"][0]}
    except rapi.GanetiApiError as error:
        return {"code": error.code, "reason": str(error)}


print(json.dumps({
    "methods": [name for name, _ in inspect.getmembers(rapi.GanetiRapiClient, inspect.isfunction)
                if not name.startswith("_")],
    "outcomes": {name: outcome_of(call) for name, call in CALLS.items()},
    "defaults": {name: outcome_of(lambda: send_defaults(name)) for name in REQUESTS},
}))
