// Generated from the OpenAPI document by `npm run docs`.

export interface paths {
    "/v1/node": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes this node */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Describes this node */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NodeInfo"];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all nodes */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists all nodes */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ListedNode"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/nodes/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes a node that will not return from the cluster */
        delete: {
            parameters: {
                query?: {
                    /** @description 1: remove its instances too */
                    "forget-instances"?: "0" | "1";
                };
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Removes a node that will not return from the cluster */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/doctor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Checks whether installations can work on this node */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Checks whether installations can work on this node */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DoctorReport"];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/doctor-of-nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Checks all nodes as /v1/doctor does */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Checks all nodes as /v1/doctor does */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NodeReport"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the metrics of both daemons for Prometheus */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns the metrics of both daemons for Prometheus */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes the cluster and its settings */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Describes the cluster and its settings */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ClusterInfo"];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/appliances/{name}/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the cluster, OS definitions and instances that use an appliance */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the cluster, OS definitions and instances that use an appliance */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            cluster: boolean;
                            operatingSystems: string[];
                            instances: string[];
                        };
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/renew-crypto": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reports the progress of a renewal of the cluster key that this node runs */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Reports the progress of a renewal of the cluster key that this node runs */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            renewals: number;
                            done: {
                                /** @enum {string} */
                                step: "learn" | "seal" | "reseal" | "forget";
                                node: string;
                            }[];
                        };
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        /** Renews the cluster key, which seals all records */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /** @description default: [] */
                        skip?: string[];
                    };
                };
            };
            responses: {
                /** @description Renews the cluster key, which seals all records */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            nodes: string[];
                            skipped: string[];
                        };
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/identity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the public identity documents for verifiers */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns the public identity documents for verifiers */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            issuer: string;
                            documents: {
                                [key: string]: string;
                            };
                        };
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/identity-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Renews the identity keys */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        overlapS: number;
                    };
                };
            };
            responses: {
                /** @description Renews the identity keys */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            keys: {
                                createdAtMs: number;
                                signsFromMs: number;
                            }[];
                        };
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/relays/{name}/secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives the secret of a relay to all nodes, which keep it in memory only */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        secret: string;
                    };
                };
            };
            responses: {
                /** @description Gives the secret of a relay to all nodes, which keep it in memory only */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            nodes: string[];
                            missing: {
                                node: string;
                                reason: string;
                            }[];
                        };
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/cluster/join-tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Creates a join token for one node */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        lifetimeS: number;
                    };
                };
            };
            responses: {
                /** @description Creates a join token for one node */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            token: string;
                            expiresAtMs: number;
                            store: string;
                        };
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes all instances */
        get: {
            parameters: {
                query?: {
                    /** @description 1: one instance per line instead of an array */
                    lines?: "0" | "1";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Describes all instances */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstanceInfo"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instance-summaries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns one InstanceSummary per line for each instance, without asking other nodes */
        get: {
            parameters: {
                query?: {
                    /** @description fields of InstanceSummary, separated by commas; default: all */
                    fields?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns one InstanceSummary per line for each instance, without asking other nodes */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/x-ndjson": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/machines/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the running instances and then each change, one MachineChanges per line */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns the running instances and then each change, one MachineChanges per line */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/x-ndjson": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orphans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists orphans. INSTANCE_ADOPT and INSTANCE_REMOVE resolve them */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists orphans. INSTANCE_ADOPT and INSTANCE_REMOVE resolve them */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            uuid: string;
                            name: string;
                            pid: number;
                            tap: string | null;
                            node: string;
                        }[];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes one instance. Private values are replaced; secrets appear by name only */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Describes one instance. Private values are replaced; secrets appear by name only */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstanceInfo"];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the log of the last installation */
        get: {
            parameters: {
                query?: {
                    /** @description 1: follow the log */
                    follow?: "0" | "1";
                };
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns the log of the last installation */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the audit log of the run lists */
        get: {
            parameters: {
                query?: {
                    /** @description 1: follow the log while the instance exists */
                    follow?: "0" | "1";
                };
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns the audit log of the run lists */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/hooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the hooks of the next installation in their order */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns the hooks of the next installation in their order */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HookBook"];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/disks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the paths of the disks on the host */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns the paths of the disks on the host */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActiveDisk"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/boot": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the boot progress of the guest and each change until the instance stops, one GuestProgress per line */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns the boot progress of the guest and each change until the instance stops, one GuestProgress per line */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/x-ndjson": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revokes the session tokens of the dialect ec2 */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Revokes the session tokens of the dialect ec2 */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/metadata/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns metadata as the guest reads it, with secrets replaced */
        get: {
            parameters: {
                query?: {
                    /** @description 1: return lost secrets as null instead of status 410 */
                    partial?: "0" | "1";
                };
                header?: never;
                path: {
                    name: string;
                    path: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns metadata as the guest reads it, with secrets replaced */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "*/*": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/queue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads the bytes that the guest wrote. The header X-Gnt-Offset is the next offset */
        get: {
            parameters: {
                query?: {
                    /** @description seconds to wait for bytes */
                    wait?: number;
                    /** @description return bytes from this offset on and drop earlier ones */
                    offset?: number;
                };
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Reads the bytes that the guest wrote. The header X-Gnt-Offset is the next offset */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/octet-stream": unknown;
                    };
                };
                /** @description Reads the bytes that the guest wrote. The header X-Gnt-Offset is the next offset */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        /** Queues bytes for the guest, at most 64 KiB, completely or not at all */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/octet-stream": unknown;
                };
            };
            responses: {
                /** @description Queues bytes for the guest, at most 64 KiB, completely or not at all */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/exports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the exports on this node */
        get: {
            parameters: {
                query?: {
                    /** @description list the exports in this directory instead */
                    directory?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the exports on this node */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ExportInfo"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the images of all catalogues */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the images of all catalogues */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ImageInfo"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/catalogues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the image catalogues */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the image catalogues */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CatalogueInfo"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        /** Adds a catalogue from a file of this node or an HTTPS URL */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        name: string;
                        source: string;
                    };
                };
            };
            responses: {
                /** @description Adds a catalogue from a file of this node or an HTTPS URL */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/resolve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Returns the current source and checksum of an image */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        name: string;
                    };
                };
            };
            responses: {
                /** @description Returns the current source and checksum of an image */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ResolvedImage"];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Imports a file of this node as an image */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        name: string;
                        /** Format: starts_with */
                        path: string;
                        checksum?: string;
                        title?: string;
                        user?: string;
                        minDiskBytes?: number;
                        /** @enum {string} */
                        format?: "raw" | "qcow2" | "vmdk" | "vdi" | "vhdx" | "auto";
                    };
                };
            };
            responses: {
                /** @description Imports a file of this node as an image */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Removes an imported image or a catalogue */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        name: string;
                    };
                };
            };
            responses: {
                /** @description Removes an imported image or a catalogue */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/catalogues/update": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads the named catalogues again, or all */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        names: string[];
                    };
                };
            };
            responses: {
                /** @description Reads the named catalogues again, or all */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/os": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the OS definitions of this node */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the OS definitions of this node */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OsInfo"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/os/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes one OS definition */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Describes one OS definition */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OsInfo"];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/os-of-nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the OS definitions of all nodes */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the OS definitions of all nodes */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": ({
                            node: string;
                            operatingSystems: {
                                name: string;
                                path: string | null;
                                valid: boolean;
                                problem: string | null;
                                apiVersions: number[];
                                variants: string[];
                                parameters: {
                                    name: string;
                                    description: string;
                                }[];
                                hostScripts: string[];
                                applianceScripts: string[];
                                trusted: boolean;
                                trust: {
                                    /** @enum {string} */
                                    state: "trusted" | "untrusted" | "changed" | "by-name";
                                    digest: string | null;
                                    trustedAtMs: number | null;
                                };
                                hidden: boolean;
                                blacklisted: boolean;
                                /**
                                 * @default optional
                                 * @enum {string}
                                 */
                                safeInstall: "optional" | "required";
                                appliance?: string;
                                defaults: {
                                    [key: string]: {
                                        value: string;
                                        /** @enum {string} */
                                        visibility: "public" | "private" | "secret";
                                    };
                                };
                                variantSettings: {
                                    [key: string]: {
                                        trust: {
                                            /** @enum {string} */
                                            state: "trusted" | "untrusted" | "changed" | "by-name";
                                            digest: string | null;
                                            trustedAtMs: number | null;
                                        };
                                        hidden: boolean;
                                        blacklisted: boolean;
                                        /**
                                         * @default optional
                                         * @enum {string}
                                         */
                                        safeInstall: "optional" | "required";
                                        appliance?: string;
                                        defaults: {
                                            [key: string]: {
                                                value: string;
                                                /** @enum {string} */
                                                visibility: "public" | "private" | "secret";
                                            };
                                        };
                                    };
                                };
                            }[];
                        } | {
                            node: string;
                            silent: string;
                        })[];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/profiles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the profiles */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the profiles */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProfileInfo"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/networks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the networks with their addresses */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the networks with their addresses */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NetworkInfo"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bootenvs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the boot environments */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the boot environments */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BootEnvInfo"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/boot-templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the templates of boot environments */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the templates of boot environments */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            contents: string;
                        }[];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/boot-params": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the params of boot environments */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the params of boot environments */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            name: string;
                            schema: unknown;
                        }[];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/boot-archives": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the extracted archives of boot environments on this node */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists the extracted archives of boot environments on this node */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            isoFile: string;
                            sha256: string;
                            sizeBytes: number;
                            bootEnvs: string[];
                        }[];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/boot-plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Renders every file of a boot environment for an instance, without private and secret values */
        get: {
            parameters: {
                query?: {
                    /** @description default: the instance's own boot environment */
                    bootenv?: string;
                };
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Renders every file of a boot environment for an instance, without private and secret values */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BootPlan"];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all jobs without their logs */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lists all jobs without their logs */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JobRecord"][];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        /** Submits an operation as a job */
        post: {
            parameters: {
                query?: {
                    /** @description 1: check only, with status 200; job: check as a job */
                    "dry-run"?: "1" | "job";
                    /** @description user on whose behalf another node asks, as JSON */
                    submitter?: string;
                    /** @description why another node chose this one for a new instance, as JSON */
                    placement?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Opcode"];
                };
            };
            responses: {
                /** @description Submits an operation as a job */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DryRunAccepted"];
                    };
                };
                /** @description Submits an operation as a job */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JobSubmitted"];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes one job */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Describes one job */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JobRecord"];
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Cancels a job */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Cancels a job */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, never>;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/jobs/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the events of a job until its end, one JobEvent per line */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns the events of a job until its end, one JobEvent per line */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/x-ndjson": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns changes of the cluster as server-sent events, resumed after the header Last-Event-ID */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns changes of the cluster as server-sent events, resumed after the header Last-Event-ID */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/web": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Serves the web page on 127.0.0.1 while this request lasts, one WebLink per line */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /** @description default: 0 */
                        port?: number;
                    };
                };
            };
            responses: {
                /** @description Serves the web page on 127.0.0.1 while this request lasts, one WebLink per line */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/x-ndjson": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns this API as an OpenAPI document */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Returns this API as an OpenAPI document */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": unknown;
                    };
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/connect/{port}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Connects to a TCP port of the guest (`Upgrade: tcp`) */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                    port: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Connects to a TCP port of the guest (`Upgrade: tcp`) */
                101: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{name}/console": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Connects to the serial console (`Upgrade: tcp`) */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Connects to the serial console (`Upgrade: tcp`) */
                101: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A failure */
                default: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ApiError"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        ActiveDisk: {
            index: number;
            name: string | null;
            sizeBytes: number;
            path: string;
        };
        ApiError: {
            code: string;
            message: string;
            hint: string | null;
            details: {
                [key: string]: unknown;
            };
        };
        BootEnvInfo: {
            name: string;
            description: string;
            osName: string;
            installs: boolean;
            isoFile: string;
            isoUrl: string;
            templates: string[];
            requiredParams: string[];
            instances: string[];
            document: {
                [key: string]: unknown;
            };
        };
        BootPlan: {
            bootEnv: string;
            script: string;
            source: ({
                /** @constant */
                kind: "archive";
                isoFile: string;
            } | {
                /** @constant */
                kind: "repository";
                url: string;
            }) | null;
            kernel: string | null;
            initrds: string[];
            leftOut: string[];
            /** @default [] */
            constants: string[];
            files: {
                path: string;
                contents: string | null;
                isSecretBearing: boolean;
                lostSecrets: string[];
            }[];
        };
        CatalogueInfo: {
            name: string;
            source: string;
            images: number;
            refused: number;
            updatedAtMs: number | null;
        };
        ClusterInfo: {
            /** @constant */
            schema: 1;
            name: string;
            uuid: string;
            createdAtMs: number;
            installTimeoutS: number;
            hostScripts: boolean;
            appliance?: string;
            defaultOs?: string;
            launchDefaults?: {
                diskBytes?: number;
                memoryMiB?: number;
                vcpus?: number;
                net?: string;
            };
            exposeServices: {
                [key: string]: {
                    port: number;
                    host: string;
                    hostPort: number;
                    /** @constant */
                    protocol?: "udp";
                } | {
                    port: number;
                    socketPath: string;
                    /** @constant */
                    protocol?: "udp";
                };
            };
            packageMirrors?: {
                [key: string]: string;
            };
            imageKeys?: {
                [key: string]: {
                    /** @constant */
                    kind: "minisign";
                    id: string;
                    /** Format: base64 */
                    publicKey: string;
                } | {
                    /** @constant */
                    kind: "openpgp";
                    /** Format: base64 */
                    keyring: string;
                };
            };
            remoteFolders?: string[];
            remoteHosts?: string[];
            confineGuests?: boolean;
            guestNetworks?: (string)[];
            sharedFileStorageDir?: string;
            vgName?: string;
            zfsPool?: string;
            lowSpacePercent?: number;
            dataRate?: 0 | number;
            maxImageBytes?: number;
            downloadTimeoutS?: number;
            minDownloadRate?: number;
            imageCa?: string;
            identity?: {
                /** @enum {string} */
                policy: "no" | "yes" | "tagged";
                trustDomain?: string;
                issuer?: string;
                audiences?: string[];
                revoked?: string[];
                aws?: {
                    sts: string;
                    role?: string;
                    roles?: {
                        [key: string]: string;
                    };
                    audience?: string;
                    region?: string;
                };
                google?: {
                    provider: string;
                    account?: string;
                    accounts?: {
                        [key: string]: string;
                    };
                    sts?: string;
                    iam?: string;
                };
            };
            relays?: {
                [key: string]: {
                    url: string;
                    auth: {
                        /** @constant */
                        kind: "bearer";
                    } | {
                        /** @constant */
                        kind: "basic";
                        user: string;
                    } | {
                        /** @constant */
                        kind: "header";
                        name: string;
                    } | {
                        /** @constant */
                        kind: "query";
                        name: string;
                    };
                    /** @enum {string} */
                    access: "tagged" | "all";
                    methods?: ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS")[];
                    paths?: string[];
                    rate?: number;
                    maxBytes?: number;
                    timeoutS?: number;
                };
            };
            tags?: string[];
            store: string;
            nodes: string[];
            instances: number;
            relaysWithoutSecret?: string[];
        };
        DoctorReport: {
            ok: boolean;
            findings: {
                check: string;
                /** @enum {string} */
                level: "ok" | "warning" | "error";
                message: string;
                hint: string | null;
            }[];
        };
        ExportInfo: {
            name: string;
            path: string;
            createdAtMs: number;
            osType: string | null;
            sizeBytes: number;
            problem: string | null;
            instance: string | null;
            losses: string[];
        };
        HookBook: {
            stages: {
                /** @enum {string} */
                stage: "install.pre.before" | "install.pre" | "install.pre.after" | "before-install.before" | "before-install" | "before-install.after" | "before-reset.before" | "before-reset" | "before-reset.after" | "image.before" | "image" | "image.after" | "os-scripts.before" | "os-scripts" | "os-scripts.after" | "after-install-chroot.before" | "after-install-chroot" | "after-install-chroot.after" | "after-reset-chroot.before" | "after-reset-chroot" | "after-reset-chroot.after" | "personalize.before" | "personalize" | "personalize.after" | "after-install.before" | "after-install" | "after-install.after" | "after-reset.before" | "after-reset" | "after-reset.after" | "install.post.before" | "install.post" | "install.post.after";
                steps: {
                    label: string;
                    file: string;
                    fields: string[];
                }[];
            }[];
            remarks: string[];
        };
        DryRunAccepted: {
            /** @constant */
            ok: true;
            hooks?: components["schemas"]["HookBook"];
        };
        ImageInfo: {
            name: string;
            catalogue: string;
            aliases: string[];
            title: string;
            /**
             * @default auto
             * @enum {string}
             */
            format: "raw" | "qcow2" | "vmdk" | "vdi" | "vhdx" | "auto";
            /** @default null */
            user: string | null;
            /** @default null */
            minDiskBytes: number | null;
            /** @default null */
            cloudInit: string | null;
            source: string;
            checksum: string | null;
            checksums: string | null;
            /** @enum {string} */
            verified: "signature" | "https" | "catalogue" | "import";
            isCached: boolean;
            isShadowed: boolean;
        };
        InstanceInfo: {
            /** @constant */
            schema: 1;
            name: string;
            uuid: string;
            instanceId: string;
            primaryNode: string;
            osType: string | null;
            osImage: string | null;
            osImageChecksum: string | null;
            osImageGrow: boolean;
            /** @default null */
            osImageFormat: ("raw" | "qcow2" | "vmdk" | "vdi" | "vhdx") | null;
            personalizationPackage: string | null;
            /** @default null */
            personalizationChecksum: string | null;
            safeInstall: boolean;
            installParameters: {
                /** @enum {string} */
                accel?: "auto" | "kvm" | "tcg";
                boot_order?: string;
                cdrom_image_path?: string;
                /** @enum {string} */
                firmware?: "bios" | "uefi";
                /** @enum {string} */
                watchdog?: "no" | "reset" | "inject-nmi";
                kernel_path?: string;
                initrd_path?: string;
                kernel_args?: string;
                metadata_hop_limit?: number;
                metadata_request_rate?: number;
                metadata_request_burst?: number;
                metadata_connections?: number;
                metadata_connection_rate?: number;
                /** @enum {string} */
                boot_report?: "vendor-data" | "user-data" | "no";
                decommission_timeout?: number;
                /** @enum {string} */
                systemd_credentials?: "yes" | "no";
            };
            /**
             * @default report
             * @enum {string}
             */
            mediumSuccess: "report" | "poweroff";
            /** @default null */
            appliance: string | null;
            /** @default null */
            installTimeoutS: number | null;
            osParameters: {
                [key: string]: string;
            };
            secretNames: string[];
            /** @default [] */
            profiles: string[];
            /** @default null */
            bootEnv: string | null;
            packageNeedsPassword: boolean;
            communication: boolean;
            channel: {
                /** Format: ipv4 */
                ip: string;
                mac: string;
                uuid: string;
            };
            sshKeys: string[];
            metadata: {
                [key: string]: string;
            };
            tags: string[];
            seedDisk: boolean;
            dialects: ("ganeti" | "ec2" | "openstack" | "nocloud" | "gce")[];
            /** @enum {string} */
            metadataToken: "optional" | "required";
            /** @enum {string} */
            diskTemplate: "file" | "sharedfile" | "plain" | "zfs" | "diskless";
            disks: {
                uuid: string;
                name: string | null;
                sizeBytes: number;
                port?: number;
                vg?: string;
                pool?: string;
                dataset?: string;
            }[];
            /** @default [] */
            snapshots: {
                uuid: string;
                name: string;
                takenAtMs: number;
                wasRunning: boolean;
                instanceId: string;
                /** @enum {string} */
                installState: "created" | "installed";
                disks: {
                    uuid: string;
                    name: string | null;
                    sizeBytes: number;
                    port?: number;
                    vg?: string;
                    pool?: string;
                    dataset?: string;
                }[];
                /** @default null */
                hostKeys: {
                    instanceId: string;
                    keys: string[];
                } | null;
            }[];
            /** @default null */
            restoreId: string | null;
            nics: {
                uuid: string;
                mac: string;
                /** @enum {string} */
                mode: "bridged" | "user";
                link: string | null;
                name: string | null;
                ip: string | null;
                networkName?: string;
                /** @default null */
                network: {
                    /** @default [] */
                    addresses: (string)[];
                    /** @default [] */
                    gateways: (string)[];
                    /** @default [] */
                    nameservers: (string)[];
                    /** @default [] */
                    search: string[];
                    /** @default [] */
                    routes: {
                        to: string;
                        via: string;
                    }[];
                    /** @default null */
                    mtu: number | null;
                } | null;
                /** @enum {string} */
                reach?: "all" | "public";
                port?: number;
            }[];
            /** @default null */
            partsOfRun: {
                nics: {
                    uuid: string;
                    mac: string;
                    /** @enum {string} */
                    mode: "bridged" | "user";
                    link: string | null;
                    name: string | null;
                    ip: string | null;
                    networkName?: string;
                    /** @default null */
                    network: {
                        /** @default [] */
                        addresses: (string)[];
                        /** @default [] */
                        gateways: (string)[];
                        /** @default [] */
                        nameservers: (string)[];
                        /** @default [] */
                        search: string[];
                        /** @default [] */
                        routes: {
                            to: string;
                            via: string;
                        }[];
                        /** @default null */
                        mtu: number | null;
                    } | null;
                    /** @enum {string} */
                    reach?: "all" | "public";
                    port?: number;
                }[];
                disks: {
                    uuid: string;
                    name: string | null;
                    sizeBytes: number;
                    port?: number;
                    vg?: string;
                    pool?: string;
                    dataset?: string;
                }[];
                beparams?: {
                    memoryMiB: number;
                    vcpus: number;
                };
                hvparams?: {
                    /** @enum {string} */
                    accel?: "auto" | "kvm" | "tcg";
                    boot_order?: string;
                    cdrom_image_path?: string;
                    /** @enum {string} */
                    firmware?: "bios" | "uefi";
                    /** @enum {string} */
                    watchdog?: "no" | "reset" | "inject-nmi";
                    kernel_path?: string;
                    initrd_path?: string;
                    kernel_args?: string;
                    metadata_hop_limit?: number;
                    metadata_request_rate?: number;
                    metadata_request_burst?: number;
                    metadata_connections?: number;
                    metadata_connection_rate?: number;
                    /** @enum {string} */
                    boot_report?: "vendor-data" | "user-data" | "no";
                    decommission_timeout?: number;
                    /** @enum {string} */
                    systemd_credentials?: "yes" | "no";
                };
                communication?: boolean;
                seedDisk?: boolean;
                dialects?: ("ganeti" | "ec2" | "openstack" | "nocloud" | "gce")[];
                bootEnv?: string | null;
                cloudInit?: {
                    datasource: string | null;
                    reason: string;
                };
            } | null;
            beparams: {
                memoryMiB: number;
                vcpus: number;
            };
            hvparams: {
                /** @enum {string} */
                accel?: "auto" | "kvm" | "tcg";
                boot_order?: string;
                cdrom_image_path?: string;
                /** @enum {string} */
                firmware?: "bios" | "uefi";
                /** @enum {string} */
                watchdog?: "no" | "reset" | "inject-nmi";
                kernel_path?: string;
                initrd_path?: string;
                kernel_args?: string;
                metadata_hop_limit?: number;
                metadata_request_rate?: number;
                metadata_request_burst?: number;
                metadata_connections?: number;
                metadata_connection_rate?: number;
                /** @enum {string} */
                boot_report?: "vendor-data" | "user-data" | "no";
                decommission_timeout?: number;
                /** @enum {string} */
                systemd_credentials?: "yes" | "no";
            };
            /** @enum {string} */
            adminState: "up" | "down";
            /** @default null */
            stoppedByJob: number | null;
            /** @enum {string} */
            installState: "created" | "installing" | "installed" | "failed";
            install: {
                jobId: number;
                /** @enum {string} */
                state: "installing" | "success" | "failed" | "canceled";
                startedAtMs: number;
                endedAtMs: number | null;
                stage: ("fetch-image" | "check-package" | "create-disks" | "medium" | "prepare-appliance" | "boot-appliance" | "shutdown-appliance" | "hooks" | "wait-disks" | "verify" | "image" | "grow" | "mount" | "os-scripts" | "personalize" | "unmount" | "sync" | "install.pre.before" | "install.pre" | "install.pre.after" | "before-install.before" | "before-install" | "before-install.after" | "before-reset.before" | "before-reset" | "before-reset.after" | "image.before" | "image.after" | "os-scripts.before" | "os-scripts.after" | "after-install-chroot.before" | "after-install-chroot" | "after-install-chroot.after" | "after-reset-chroot.before" | "after-reset-chroot" | "after-reset-chroot.after" | "personalize.before" | "personalize.after" | "after-install.before" | "after-install" | "after-install.after" | "after-reset.before" | "after-reset" | "after-reset.after" | "install.post.before" | "install.post" | "install.post.after") | null;
                error: {
                    code: string;
                    message: string;
                    hint: string | null;
                } | null;
                stages: {
                    /** @enum {string} */
                    stage: "fetch-image" | "check-package" | "create-disks" | "medium" | "prepare-appliance" | "boot-appliance" | "shutdown-appliance" | "hooks" | "wait-disks" | "verify" | "image" | "grow" | "mount" | "os-scripts" | "personalize" | "unmount" | "sync" | "install.pre.before" | "install.pre" | "install.pre.after" | "before-install.before" | "before-install" | "before-install.after" | "before-reset.before" | "before-reset" | "before-reset.after" | "image.before" | "image.after" | "os-scripts.before" | "os-scripts.after" | "after-install-chroot.before" | "after-install-chroot" | "after-install-chroot.after" | "after-reset-chroot.before" | "after-reset-chroot" | "after-reset-chroot.after" | "personalize.before" | "personalize.after" | "after-install.before" | "after-install" | "after-install.after" | "after-reset.before" | "after-reset" | "after-reset.after" | "install.post.before" | "install.post" | "install.post.after";
                    durationMs: number;
                    summary: string;
                }[];
                logFile: string | null;
                provenance?: {
                    imageChecksum: string | null;
                    imageKey: string | null;
                    osDigest: string | null;
                    applianceDigest: string | null;
                };
            } | null;
            /** @default null */
            guestReport: {
                runStartedAtMs: number;
                readyAtMs: number | null;
                readySource: string | null;
                /** @default null */
                boot: {
                    /** @default null */
                    stage: ("init-local" | "init-network" | "modules-config" | "modules-final") | null;
                    errors: string[];
                    recoverableErrors: string[];
                    stages: {
                        /** @enum {string} */
                        name: "init-local" | "init-network" | "modules-config" | "modules-final";
                        seconds: number;
                    }[];
                    /** @enum {string} */
                    status: "running" | "done" | "degraded" | "error";
                } | null;
                /** @default [] */
                hostKeys: string[];
                /** @default [] */
                firstHostKeys: string[];
                /** @default null */
                loginUser: string | null;
                /** @default 0 */
                afterSequence: number;
            } | null;
            /**
             * @default {
             *       "boot": true,
             *       "priority": 100,
             *       "delayS": 0,
             *       "lostSecrets": "start",
             *       "restarts": 0
             *     }
             */
            autostart: {
                boot: boolean;
                priority: number;
                delayS: number;
                /** @enum {string} */
                lostSecrets: "start" | "wait";
                restarts: number;
            };
            /** @default null */
            beforeReinstall: {
                /** @enum {string} */
                adminState: "up" | "down";
                /** @enum {string} */
                installState: "created" | "installed" | "failed";
                install: {
                    jobId: number;
                    /** @enum {string} */
                    state: "installing" | "success" | "failed" | "canceled";
                    startedAtMs: number;
                    endedAtMs: number | null;
                    stage: ("fetch-image" | "check-package" | "create-disks" | "medium" | "prepare-appliance" | "boot-appliance" | "shutdown-appliance" | "hooks" | "wait-disks" | "verify" | "image" | "grow" | "mount" | "os-scripts" | "personalize" | "unmount" | "sync" | "install.pre.before" | "install.pre" | "install.pre.after" | "before-install.before" | "before-install" | "before-install.after" | "before-reset.before" | "before-reset" | "before-reset.after" | "image.before" | "image.after" | "os-scripts.before" | "os-scripts.after" | "after-install-chroot.before" | "after-install-chroot" | "after-install-chroot.after" | "after-reset-chroot.before" | "after-reset-chroot" | "after-reset-chroot.after" | "personalize.before" | "personalize.after" | "after-install.before" | "after-install" | "after-install.after" | "after-reset.before" | "after-reset" | "after-reset.after" | "install.post.before" | "install.post" | "install.post.after") | null;
                    error: {
                        code: string;
                        message: string;
                        hint: string | null;
                    } | null;
                    stages: {
                        /** @enum {string} */
                        stage: "fetch-image" | "check-package" | "create-disks" | "medium" | "prepare-appliance" | "boot-appliance" | "shutdown-appliance" | "hooks" | "wait-disks" | "verify" | "image" | "grow" | "mount" | "os-scripts" | "personalize" | "unmount" | "sync" | "install.pre.before" | "install.pre" | "install.pre.after" | "before-install.before" | "before-install" | "before-install.after" | "before-reset.before" | "before-reset" | "before-reset.after" | "image.before" | "image.after" | "os-scripts.before" | "os-scripts.after" | "after-install-chroot.before" | "after-install-chroot" | "after-install-chroot.after" | "after-reset-chroot.before" | "after-reset-chroot" | "after-reset-chroot.after" | "personalize.before" | "personalize.after" | "after-install.before" | "after-install" | "after-install.after" | "after-reset.before" | "after-reset" | "after-reset.after" | "install.post.before" | "install.post" | "install.post.after";
                        durationMs: number;
                        summary: string;
                    }[];
                    logFile: string | null;
                    provenance?: {
                        imageChecksum: string | null;
                        imageKey: string | null;
                        osDigest: string | null;
                        applianceDigest: string | null;
                    };
                } | null;
            } | null;
            createdAtMs: number;
            modifiedAtMs: number;
            serialNo: number;
            osParametersPrivate: {
                [key: string]: "<redacted>";
            };
            osParametersEffective: {
                [key: string]: {
                    value: string;
                    /** @enum {string} */
                    visibility: "public" | "private" | "secret";
                    source: string;
                };
            };
            applianceInForce?: {
                name: string;
                source: string;
            };
            hookNames: string[];
            runListNames?: {
                [key: string]: string[];
            };
            lifecycle?: {
                run: string;
                /** @enum {string} */
                state: "booting" | "operational" | "stranded" | "decommissioning" | "decommissioned" | "failed";
                kind: ("reboot" | "stop" | "terminate" | "service_restart") | null;
                script: (string) | null;
                exitStatus: number | null;
                reason: string | null;
                deadlineMs: number | null;
            } | null;
            hasUserData: boolean;
            hasVendorData: boolean;
            hasNetworkConfig: boolean;
            /** @enum {string} */
            status: "running" | "paused" | "ADMIN_down" | "ERROR_down" | "ERROR_up" | "installing" | "install_failed" | "ERROR_nodedown" | "ERROR_nodefails" | "ERROR_nodeoffline";
            running: {
                pid: number;
                /** @enum {string} */
                accelerator: "kvm" | "tcg";
                startedAtMs: number;
                tap: string | null;
                readyAtMs: number | null;
                halt?: {
                    /** @enum {string} */
                    reason: "disk-full" | "disk-error";
                    sinceMs: number;
                } | null;
                bootEnv?: {
                    name: string;
                    failure: {
                        code: string;
                        message: string;
                    } | null;
                    lost: {
                        path: string;
                        secrets: string[];
                    }[];
                } | null;
                lostSecrets?: string[];
            } | null;
            boot: {
                /** @default null */
                stage: ("init-local" | "init-network" | "modules-config" | "modules-final") | null;
                errors: string[];
                recoverableErrors: string[];
                stages: {
                    /** @enum {string} */
                    name: "init-local" | "init-network" | "modules-config" | "modules-final";
                    seconds: number;
                }[];
                /** @enum {string} */
                status: "running" | "done" | "degraded" | "error";
            } | null;
            /**
             * @default {
             *       "user": null,
             *       "hostKeys": [],
             *       "saidHostKeys": []
             *     }
             */
            ssh: {
                user: string | null;
                hostKeys: string[];
                saidHostKeys: string[];
            };
            cloudInit: {
                datasource: string | null;
                reason: string;
            };
            explanation: string;
        };
        InstanceSummary: {
            uuid: string;
            name: string;
            primaryNode: string;
            osType: string | null;
            /** @enum {string} */
            adminState: "up" | "down";
            /** @enum {string} */
            installState: "created" | "installing" | "installed" | "failed";
            tags: string[];
            beparams: {
                memoryMiB: number;
                vcpus: number;
            };
            /** @enum {string} */
            diskTemplate: "file" | "sharedfile" | "plain" | "zfs" | "diskless";
            /** @enum {string} */
            status: "running" | "paused" | "ADMIN_down" | "ERROR_down" | "ERROR_up" | "installing" | "install_failed" | "ERROR_nodedown" | "ERROR_nodefails" | "ERROR_nodeoffline";
            communication: boolean;
            serialNo: number;
            createdAtMs: number;
            modifiedAtMs: number;
            running: {
                pid: number;
                /** @enum {string} */
                accelerator: "kvm" | "tcg";
                startedAtMs: number;
                tap: string | null;
                halt?: {
                    /** @enum {string} */
                    reason: "disk-full" | "disk-error";
                    sinceMs: number;
                } | null;
                lostSecrets?: string[];
            } | null;
        };
        HelloEvent: {
            node: string;
            version: string;
            isResumed: boolean;
        };
        InstancesEvent: {
            changed: components["schemas"]["InstanceSummary"][];
            removed: string[];
        };
        JobsEvent: {
            changed: {
                id: number;
                /** @enum {string} */
                status: "queued" | "waiting" | "running" | "canceling" | "canceled" | "success" | "error";
                opcode: string;
                summary: string;
                instance: string | null;
                node?: string;
                submitter?: string;
                waitsFor: number[];
                waitsBecause?: string | null;
                receivedAtMs: number;
                startedAtMs: number | null;
                endedAtMs: number | null;
                error: {
                    code: string;
                    message: string;
                    hint: string | null;
                    /** @default {} */
                    details: {
                        [key: string]: unknown;
                    };
                    /** @enum {string} */
                    phase: "prerequisite" | "execution";
                    stage: ("fetch-image" | "check-package" | "create-disks" | "medium" | "prepare-appliance" | "boot-appliance" | "shutdown-appliance" | "hooks" | "wait-disks" | "verify" | "image" | "grow" | "mount" | "os-scripts" | "personalize" | "unmount" | "sync" | "install.pre.before" | "install.pre" | "install.pre.after" | "before-install.before" | "before-install" | "before-install.after" | "before-reset.before" | "before-reset" | "before-reset.after" | "image.before" | "image.after" | "os-scripts.before" | "os-scripts.after" | "after-install-chroot.before" | "after-install-chroot" | "after-install-chroot.after" | "after-reset-chroot.before" | "after-reset-chroot" | "after-reset-chroot.after" | "personalize.before" | "personalize.after" | "after-install.before" | "after-install" | "after-install.after" | "after-reset.before" | "after-reset" | "after-reset.after" | "install.post.before" | "install.post" | "install.post.after") | null;
                    logTail: string[];
                } | null;
                /** @constant */
                isDryRun?: true;
            }[];
            removed: number[];
        };
        NodesEvent: {
            nodes: {
                name: string;
                /** @enum {string} */
                state: "up" | "silent" | "failing" | "offline";
                flags: {
                    drained: boolean;
                    offline: boolean;
                };
            }[];
        };
        ObjectsEvent: {
            changed: ("cluster" | "os" | "networks" | "profiles" | "bootenvs" | "boot-templates" | "boot-params")[];
        };
        WebSession: {
            user: string;
            /** @enum {string} */
            role: "read" | "write";
            isBound: boolean;
            csrf: string;
            node: string;
            version: string;
        };
        JobEvent: {
            /** @constant */
            type: "status";
            atMs: number;
            /** @enum {string} */
            status: "queued" | "waiting" | "running" | "canceling" | "canceled" | "success" | "error";
            waitsFor: number[];
            waitsBecause?: string;
        } | {
            /** @constant */
            type: "log";
            atMs: number;
            message: string;
            /** @enum {string} */
            level: "info" | "warn";
        } | {
            /** @constant */
            type: "stage-started";
            atMs: number;
            /** @enum {string} */
            stage: "fetch-image" | "check-package" | "create-disks" | "medium" | "prepare-appliance" | "boot-appliance" | "shutdown-appliance" | "hooks" | "wait-disks" | "verify" | "image" | "grow" | "mount" | "os-scripts" | "personalize" | "unmount" | "sync" | "install.pre.before" | "install.pre" | "install.pre.after" | "before-install.before" | "before-install" | "before-install.after" | "before-reset.before" | "before-reset" | "before-reset.after" | "image.before" | "image.after" | "os-scripts.before" | "os-scripts.after" | "after-install-chroot.before" | "after-install-chroot" | "after-install-chroot.after" | "after-reset-chroot.before" | "after-reset-chroot" | "after-reset-chroot.after" | "personalize.before" | "personalize.after" | "after-install.before" | "after-install" | "after-install.after" | "after-reset.before" | "after-reset" | "after-reset.after" | "install.post.before" | "install.post" | "install.post.after";
        } | {
            /** @constant */
            type: "stage-finished";
            atMs: number;
            /** @enum {string} */
            stage: "fetch-image" | "check-package" | "create-disks" | "medium" | "prepare-appliance" | "boot-appliance" | "shutdown-appliance" | "hooks" | "wait-disks" | "verify" | "image" | "grow" | "mount" | "os-scripts" | "personalize" | "unmount" | "sync" | "install.pre.before" | "install.pre" | "install.pre.after" | "before-install.before" | "before-install" | "before-install.after" | "before-reset.before" | "before-reset" | "before-reset.after" | "image.before" | "image.after" | "os-scripts.before" | "os-scripts.after" | "after-install-chroot.before" | "after-install-chroot" | "after-install-chroot.after" | "after-reset-chroot.before" | "after-reset-chroot" | "after-reset-chroot.after" | "personalize.before" | "personalize.after" | "after-install.before" | "after-install" | "after-install.after" | "after-reset.before" | "after-reset" | "after-reset.after" | "install.post.before" | "install.post" | "install.post.after";
            durationMs: number;
            summary: string;
        } | {
            /** @constant */
            type: "progress";
            atMs: number;
            activity: string;
            doneBytes: number;
            totalBytes: number | null;
        } | {
            /** @constant */
            type: "output";
            atMs: number;
            /** @enum {string} */
            stage: "fetch-image" | "check-package" | "create-disks" | "medium" | "prepare-appliance" | "boot-appliance" | "shutdown-appliance" | "hooks" | "wait-disks" | "verify" | "image" | "grow" | "mount" | "os-scripts" | "personalize" | "unmount" | "sync" | "install.pre.before" | "install.pre" | "install.pre.after" | "before-install.before" | "before-install" | "before-install.after" | "before-reset.before" | "before-reset" | "before-reset.after" | "image.before" | "image.after" | "os-scripts.before" | "os-scripts.after" | "after-install-chroot.before" | "after-install-chroot" | "after-install-chroot.after" | "after-reset-chroot.before" | "after-reset-chroot" | "after-reset-chroot.after" | "personalize.before" | "personalize.after" | "after-install.before" | "after-install" | "after-install.after" | "after-reset.before" | "after-reset" | "after-reset.after" | "install.post.before" | "install.post" | "install.post.after";
            line: string;
        } | {
            /** @constant */
            type: "script-output";
            atMs: number;
            number: number;
            text: string;
        } | {
            /** @constant */
            type: "end";
            atMs: number;
            job: components["schemas"]["JobRecord"];
        };
        JobRecord: {
            id: number;
            /** @enum {string} */
            status: "queued" | "waiting" | "running" | "canceling" | "canceled" | "success" | "error";
            opcode: string;
            summary: string;
            input: {
                [key: string]: unknown;
            };
            instance: string | null;
            node?: string;
            submitter?: string;
            waitsFor: number[];
            waitsBecause?: string | null;
            receivedAtMs: number;
            startedAtMs: number | null;
            endedAtMs: number | null;
            log: {
                sequence: number;
                atMs: number;
                message: string;
                /** @constant */
                level?: "warn";
            }[];
            result: unknown;
            error: {
                code: string;
                message: string;
                hint: string | null;
                /** @default {} */
                details: {
                    [key: string]: unknown;
                };
                /** @enum {string} */
                phase: "prerequisite" | "execution";
                stage: ("fetch-image" | "check-package" | "create-disks" | "medium" | "prepare-appliance" | "boot-appliance" | "shutdown-appliance" | "hooks" | "wait-disks" | "verify" | "image" | "grow" | "mount" | "os-scripts" | "personalize" | "unmount" | "sync" | "install.pre.before" | "install.pre" | "install.pre.after" | "before-install.before" | "before-install" | "before-install.after" | "before-reset.before" | "before-reset" | "before-reset.after" | "image.before" | "image.after" | "os-scripts.before" | "os-scripts.after" | "after-install-chroot.before" | "after-install-chroot" | "after-install-chroot.after" | "after-reset-chroot.before" | "after-reset-chroot" | "after-reset-chroot.after" | "personalize.before" | "personalize.after" | "after-install.before" | "after-install" | "after-install.after" | "after-reset.before" | "after-reset" | "after-reset.after" | "install.post.before" | "install.post" | "install.post.after") | null;
                logTail: string[];
            } | null;
        };
        JobSubmitted: {
            id: number;
        };
        ListedNode: components["schemas"]["NodeInfo"] | {
            name: string;
            silent: string;
            instances: number;
            /**
             * @default {
             *       "drained": false,
             *       "offline": false
             *     }
             */
            flags: {
                drained: boolean;
                offline: boolean;
            };
        };
        NodeInfo: {
            name: string;
            version: string;
            root: string;
            pid: number;
            startedAtMs: number;
            metad: {
                pid: number | null;
                restarts: number;
            };
            networkNamespace: string;
            cpus: number;
            memoryMiB: number;
            memoryFreeMiB: number;
            /** @default null */
            diskBytes: number | null;
            diskFreeBytes: number;
            instances: number;
            instancesRunning: number;
            /** @default null */
            removedAtMs: number | null;
            /** @default [] */
            orphans: {
                uuid: string;
                name: string;
                pid: number;
                tap: string | null;
            }[];
            appliance: {
                /** @enum {string} */
                state: "intact" | "missing" | "corrupt";
                detail: string;
            };
            /** @default null */
            dataLinks: {
                address: {
                    host: string;
                    port: number;
                } | null;
                reason: string | null;
                links: {
                    node: string;
                    /** @enum {string} */
                    path: "direct" | "store" | "unused";
                    address: {
                        host: string;
                        port: number;
                    } | null;
                    reason: string | null;
                }[];
            } | null;
            /**
             * @default {
             *       "drained": false,
             *       "offline": false
             *     }
             */
            flags: {
                drained: boolean;
                offline: boolean;
            };
        };
        NodeReport: {
            node: string;
            report: components["schemas"]["DoctorReport"];
        } | {
            node: string;
            silent: string;
            isOffline: boolean;
        };
        OsInfo: {
            name: string;
            path: string | null;
            valid: boolean;
            problem: string | null;
            apiVersions: number[];
            variants: string[];
            parameters: {
                name: string;
                description: string;
            }[];
            hostScripts: string[];
            applianceScripts: string[];
            trusted: boolean;
            trust: {
                /** @enum {string} */
                state: "trusted" | "untrusted" | "changed" | "by-name";
                digest: string | null;
                trustedAtMs: number | null;
            };
            hidden: boolean;
            blacklisted: boolean;
            /**
             * @default optional
             * @enum {string}
             */
            safeInstall: "optional" | "required";
            appliance?: string;
            defaults: {
                [key: string]: {
                    value: string;
                    /** @enum {string} */
                    visibility: "public" | "private" | "secret";
                };
            };
            variantSettings: {
                [key: string]: {
                    trust: {
                        /** @enum {string} */
                        state: "trusted" | "untrusted" | "changed" | "by-name";
                        digest: string | null;
                        trustedAtMs: number | null;
                    };
                    hidden: boolean;
                    blacklisted: boolean;
                    /**
                     * @default optional
                     * @enum {string}
                     */
                    safeInstall: "optional" | "required";
                    appliance?: string;
                    defaults: {
                        [key: string]: {
                            value: string;
                            /** @enum {string} */
                            visibility: "public" | "private" | "secret";
                        };
                    };
                };
            };
        };
        ProfileInfo: {
            name: string;
            osParameters: {
                [key: string]: string;
            };
            osParametersPrivate: {
                [key: string]: "<redacted>";
            };
            instances: string[];
        };
        ResolvedImage: {
            name: string;
            catalogue: string;
            source: string;
            checksum: string;
            /**
             * @default auto
             * @enum {string}
             */
            format: "raw" | "qcow2" | "vmdk" | "vdi" | "vhdx" | "auto";
            /** @default null */
            user: string | null;
            /** @default null */
            minDiskBytes: number | null;
            /** @default null */
            cloudInit: string | null;
            /** @enum {string} */
            verified: "signature" | "https" | "catalogue" | "import";
            isOffline: boolean;
        };
        NetworkInfo: {
            name: string;
            uuid: string;
            network: string;
            gateway: string | null;
            macPrefix: string | null;
            reserved: string[];
            tags: string[];
            connections: {
                [key: string]: {
                    /** @constant */
                    mode: "bridged";
                    link: string;
                } | {
                    /** @constant */
                    mode: "nat";
                };
            };
            size: number;
            free: number;
            addresses: {
                ip: string;
                instance: string;
            }[];
        };
        Opcode: {
            /** @constant */
            opcode: "INSTANCE_CREATE";
            name: string & (unknown & unknown);
            osType?: string;
            forceVariant?: boolean;
            osImage?: string;
            osImageChecksum?: string;
            osImageGrow?: boolean;
            osImageFormat?: ("raw" | "qcow2" | "vmdk" | "vdi" | "vhdx") | "auto";
            personalizationPackage?: string;
            personalizationChecksum?: string;
            personalizationUser?: string;
            personalizationPassword?: string;
            safeInstall?: boolean;
            installParameters?: {
                /** @enum {string} */
                accel?: "auto" | "kvm" | "tcg";
                boot_order?: string;
                cdrom_image_path?: string;
                /** @enum {string} */
                firmware?: "bios" | "uefi";
                /** @enum {string} */
                watchdog?: "no" | "reset" | "inject-nmi";
                kernel_path?: string;
                initrd_path?: string;
                kernel_args?: string;
                metadata_hop_limit?: number;
                metadata_request_rate?: number;
                metadata_request_burst?: number;
                metadata_connections?: number;
                metadata_connection_rate?: number;
                /** @enum {string} */
                boot_report?: "vendor-data" | "user-data" | "no";
                decommission_timeout?: number;
                /** @enum {string} */
                systemd_credentials?: "yes" | "no";
            };
            /** @enum {string} */
            mediumSuccess?: "report" | "poweroff";
            appliance?: string;
            hooks?: {
                name: string;
                /** Format: base64 */
                content: string;
            }[];
            /** @description default: {} */
            osParameters?: {
                [key: string]: string;
            };
            /** @description default: {} */
            osParametersPrivate?: {
                [key: string]: string;
            };
            /** @description default: {} */
            osParametersSecret?: {
                [key: string]: string;
            };
            bootEnv?: string;
            profiles?: string[];
            /** @description default: true */
            start?: boolean;
            /** @description default: false */
            communication?: boolean;
            /** Format: base64 */
            userData?: string;
            /** Format: base64 */
            vendorData?: string;
            /** Format: base64 */
            networkConfig?: string;
            /** @description default: [] */
            sshKeys?: string[];
            /** @description default: {} */
            metadata?: {
                [key: string]: string;
            };
            /** @description default: [] */
            tags?: string[];
            runLists?: {
                /** @description default: [] */
                boot?: {
                    name: string;
                    /** Format: base64 */
                    content: string;
                    /** @description default: null */
                    inputs?: {
                        name: string;
                        required: boolean;
                        default: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        }) | null;
                        possible?: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        })[];
                    }[] | null;
                }[];
                /** @description default: [] */
                operational?: {
                    name: string;
                    /** Format: base64 */
                    content: string;
                    /** @description default: null */
                    inputs?: {
                        name: string;
                        required: boolean;
                        default: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        }) | null;
                        possible?: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        })[];
                    }[] | null;
                }[];
                /** @description default: [] */
                decommission?: {
                    name: string;
                    /** Format: base64 */
                    content: string;
                    /** @description default: null */
                    inputs?: {
                        name: string;
                        required: boolean;
                        default: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        }) | null;
                        possible?: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        })[];
                    }[] | null;
                }[];
                /** @description default: [] */
                attachments?: {
                    name: string;
                    /** Format: base64 */
                    content: string;
                }[];
                /** @description default: {} */
                inputs?: {
                    [key: string]: {
                        /** @constant */
                        from: "text";
                        text: string;
                    } | {
                        /** @constant */
                        from: "cred";
                        name: string;
                    } | {
                        /** @constant */
                        from: "ignore";
                    };
                };
            };
            seedDisk?: boolean;
            dialects?: ("ganeti" | "ec2" | "openstack" | "nocloud" | "gce")[];
            /**
             * @description default: "optional"
             * @enum {string}
             */
            metadataToken?: "optional" | "required";
            /**
             * @description default: "file"
             * @enum {string}
             */
            diskTemplate?: "file" | "sharedfile" | "plain" | "zfs" | "diskless";
            /** @description default: [] */
            disks?: {
                sizeBytes: number;
                name?: string;
            }[];
            /** @description default: [] */
            nics?: {
                /** @description default: "auto" */
                mac?: string | "auto";
                /**
                 * @description default: "bridged"
                 * @enum {string}
                 */
                mode?: "bridged" | "user";
                link?: string;
                name?: string;
                ip?: string;
                network?: {
                    /** @description default: [] */
                    addresses?: (string)[];
                    /** @description default: [] */
                    gateways?: (string)[];
                    /** @description default: [] */
                    nameservers?: (string)[];
                    /** @description default: [] */
                    search?: string[];
                    /** @description default: [] */
                    routes?: {
                        to: string;
                        via: string;
                    }[];
                    /** @description default: null */
                    mtu?: number | null;
                };
                networkName?: string;
                /** @enum {string} */
                reach?: "all" | "public";
            }[];
            /** @description default: {} */
            beparams?: {
                memoryMiB?: number;
                vcpus?: number;
            };
            /** @description default: {} */
            hvparams?: {
                /** @enum {string} */
                accel?: "auto" | "kvm" | "tcg";
                boot_order?: string;
                cdrom_image_path?: string;
                /** @enum {string} */
                firmware?: "bios" | "uefi";
                /** @enum {string} */
                watchdog?: "no" | "reset" | "inject-nmi";
                kernel_path?: string;
                initrd_path?: string;
                kernel_args?: string;
                metadata_hop_limit?: number;
                metadata_request_rate?: number;
                metadata_request_burst?: number;
                metadata_connections?: number;
                metadata_connection_rate?: number;
                /** @enum {string} */
                boot_report?: "vendor-data" | "user-data" | "no";
                decommission_timeout?: number;
                /** @enum {string} */
                systemd_credentials?: "yes" | "no";
            };
            node?: string;
            autostart?: {
                boot?: boolean;
                priority?: number;
                delayS?: number;
                /** @enum {string} */
                lostSecrets?: "start" | "wait";
                restarts?: number;
            };
            /** @description default: true */
            install?: boolean;
            /** @enum {string} */
            onFailure?: "keep" | "remove";
            installTimeoutS?: number;
            importFrom?: string;
        } | {
            /** @constant */
            opcode: "INSTANCE_REINSTALL";
            name: string;
            osType?: string | null;
            forceVariant?: boolean;
            osImage?: string | null;
            osImageChecksum?: string | null;
            osImageGrow?: boolean;
            osImageFormat?: ("raw" | "qcow2" | "vmdk" | "vdi" | "vhdx") | "auto";
            personalizationPackage?: string | null;
            personalizationChecksum?: string | null;
            personalizationUser?: string;
            personalizationPassword?: string;
            safeInstall?: boolean;
            installParameters?: {
                accel?: ("auto" | "kvm" | "tcg") | null;
                boot_order?: string | null;
                cdrom_image_path?: string | null;
                firmware?: ("bios" | "uefi") | null;
                watchdog?: ("no" | "reset" | "inject-nmi") | null;
                kernel_path?: string | null;
                initrd_path?: string | null;
                kernel_args?: string | null;
                metadata_hop_limit?: number | null;
                metadata_request_rate?: number | null;
                metadata_request_burst?: number | null;
                metadata_connections?: number | null;
                metadata_connection_rate?: number | null;
                boot_report?: ("vendor-data" | "user-data" | "no") | null;
                decommission_timeout?: number | null;
                systemd_credentials?: ("yes" | "no") | null;
            };
            /** @enum {string} */
            mediumSuccess?: "report" | "poweroff";
            appliance?: string | null;
            hooks?: {
                name: string;
                /** Format: base64 */
                content: string;
            }[];
            /** @description default: {} */
            osParameters?: {
                [key: string]: string | null;
            };
            /** @description default: {} */
            osParametersPrivate?: {
                [key: string]: string | null;
            };
            /** @description default: {} */
            osParametersSecret?: {
                [key: string]: string | null;
            };
            bootEnv?: string | null;
            profiles?: string[];
            /** @description default: true */
            start?: boolean;
            shutdownTimeoutS?: number;
            keepOld?: boolean;
            installTimeoutS?: number;
        } | {
            /** @constant */
            opcode: "INSTANCE_SET_PARAMS";
            name: string;
            osType?: string | null;
            osImage?: string | null;
            osImageChecksum?: string | null;
            personalizationPackage?: string | null;
            personalizationChecksum?: string | null;
            appliance?: string | null;
            bootEnv?: string | null;
            forceVariant?: boolean;
            osImageGrow?: boolean;
            osImageFormat?: ("raw" | "qcow2" | "vmdk" | "vdi" | "vhdx") | "auto";
            profiles?: string[];
            /** @description default: {} */
            osParameters?: {
                [key: string]: string | null;
            };
            /** @description default: {} */
            osParametersPrivate?: {
                [key: string]: string | null;
            };
            /** @description default: {} */
            osParametersSecret?: {
                [key: string]: string | null;
            };
            communication?: boolean;
            userData?: string | null;
            vendorData?: string | null;
            networkConfig?: string | null;
            sshKeys?: string[];
            /** @description default: {} */
            metadata?: {
                [key: string]: string | null;
            };
            seedDisk?: boolean;
            dialects?: ("ganeti" | "ec2" | "openstack" | "nocloud" | "gce")[];
            /** @enum {string} */
            metadataToken?: "optional" | "required";
            autostart?: {
                boot?: boolean;
                priority?: number;
                delayS?: number;
                /** @enum {string} */
                lostSecrets?: "start" | "wait";
                restarts?: number;
            };
            installTimeoutS?: number | null;
            /** @description default: {} */
            beparams?: {
                memoryMiB?: number | null;
                vcpus?: number | null;
            };
            /** @description default: {} */
            hvparams?: {
                accel?: ("auto" | "kvm" | "tcg") | null;
                boot_order?: string | null;
                cdrom_image_path?: string | null;
                firmware?: ("bios" | "uefi") | null;
                watchdog?: ("no" | "reset" | "inject-nmi") | null;
                kernel_path?: string | null;
                initrd_path?: string | null;
                kernel_args?: string | null;
                metadata_hop_limit?: number | null;
                metadata_request_rate?: number | null;
                metadata_request_burst?: number | null;
                metadata_connections?: number | null;
                metadata_connection_rate?: number | null;
                boot_report?: ("vendor-data" | "user-data" | "no") | null;
                decommission_timeout?: number | null;
                systemd_credentials?: ("yes" | "no") | null;
            };
            installParameters?: {
                accel?: ("auto" | "kvm" | "tcg") | null;
                boot_order?: string | null;
                cdrom_image_path?: string | null;
                firmware?: ("bios" | "uefi") | null;
                watchdog?: ("no" | "reset" | "inject-nmi") | null;
                kernel_path?: string | null;
                initrd_path?: string | null;
                kernel_args?: string | null;
                metadata_hop_limit?: number | null;
                metadata_request_rate?: number | null;
                metadata_request_burst?: number | null;
                metadata_connections?: number | null;
                metadata_connection_rate?: number | null;
                boot_report?: ("vendor-data" | "user-data" | "no") | null;
                decommission_timeout?: number | null;
                systemd_credentials?: ("yes" | "no") | null;
            };
            /** @enum {string} */
            mediumSuccess?: "report" | "poweroff";
            /** @description default: [] */
            nics?: ({
                /** @constant */
                action: "add";
                at?: number;
                nic: {
                    /** @description default: "auto" */
                    mac?: string | "auto";
                    /**
                     * @description default: "bridged"
                     * @enum {string}
                     */
                    mode?: "bridged" | "user";
                    link?: string;
                    name?: string;
                    ip?: string;
                    network?: {
                        /** @description default: [] */
                        addresses?: (string)[];
                        /** @description default: [] */
                        gateways?: (string)[];
                        /** @description default: [] */
                        nameservers?: (string)[];
                        /** @description default: [] */
                        search?: string[];
                        /** @description default: [] */
                        routes?: {
                            to: string;
                            via: string;
                        }[];
                        /** @description default: null */
                        mtu?: number | null;
                    };
                    networkName?: string;
                    /** @enum {string} */
                    reach?: "all" | "public";
                };
            } | {
                /** @constant */
                action: "modify";
                which: number | string;
                changes: {
                    mac?: string | "auto";
                    /** @enum {string} */
                    mode?: "bridged" | "user";
                    link?: string | null;
                    name?: string | null;
                    ip?: string | null;
                    network?: {
                        addresses?: (string)[];
                        gateways?: (string)[];
                        nameservers?: (string)[];
                        search?: string[];
                        routes?: {
                            to: string;
                            via: string;
                        }[];
                        mtu?: number | null;
                    };
                    networkName?: string | null;
                    /** @enum {string} */
                    reach?: "all" | "public";
                };
            } | {
                /** @constant */
                action: "remove";
                which: number | string;
            })[];
            /** @description default: [] */
            disks?: ({
                /** @constant */
                action: "add";
                disk: {
                    sizeBytes: number;
                    name?: string;
                };
            } | {
                /** @constant */
                action: "modify";
                which: number | string;
                changes: {
                    name: string | null;
                };
            } | {
                /** @constant */
                action: "remove";
                which: number | string;
            })[];
            hooks?: {
                name: string;
                /** Format: base64 */
                content: string;
            }[];
            tags?: string[];
            runLists?: {
                /** @description default: [] */
                boot?: {
                    name: string;
                    /** Format: base64 */
                    content: string;
                    /** @description default: null */
                    inputs?: {
                        name: string;
                        required: boolean;
                        default: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        }) | null;
                        possible?: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        })[];
                    }[] | null;
                }[];
                /** @description default: [] */
                operational?: {
                    name: string;
                    /** Format: base64 */
                    content: string;
                    /** @description default: null */
                    inputs?: {
                        name: string;
                        required: boolean;
                        default: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        }) | null;
                        possible?: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        })[];
                    }[] | null;
                }[];
                /** @description default: [] */
                decommission?: {
                    name: string;
                    /** Format: base64 */
                    content: string;
                    /** @description default: null */
                    inputs?: {
                        name: string;
                        required: boolean;
                        default: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        }) | null;
                        possible?: ({
                            /** @constant */
                            from: "text";
                            text: string;
                        } | {
                            /** @constant */
                            from: "cred";
                            name: string;
                        } | {
                            /** @constant */
                            from: "ignore";
                        })[];
                    }[] | null;
                }[];
                /** @description default: [] */
                attachments?: {
                    name: string;
                    /** Format: base64 */
                    content: string;
                }[];
                /** @description default: {} */
                inputs?: {
                    [key: string]: {
                        /** @constant */
                        from: "text";
                        text: string;
                    } | {
                        /** @constant */
                        from: "cred";
                        name: string;
                    } | {
                        /** @constant */
                        from: "ignore";
                    };
                };
            } | null;
            hostKeys?: string[];
            instanceId?: string;
            addTags?: string[];
            removeTags?: string[];
        } | {
            /** @constant */
            opcode: "INSTANCE_QUERY_DATA";
            name: string;
        } | {
            /** @constant */
            opcode: "INSTANCE_REMOVE";
            name: string;
            /** @description default: 120 */
            shutdownTimeoutS?: number;
        } | {
            /** @constant */
            opcode: "INSTANCE_ADOPT";
            name: string;
        } | {
            /** @constant */
            opcode: "INSTANCE_RENAME";
            name: string;
            newName: string & (unknown & unknown);
            installTimeoutS?: number;
        } | {
            /** @constant */
            opcode: "INSTANCE_COPY";
            name: string;
            newName: string & (unknown & unknown);
        } | {
            /** @constant */
            opcode: "INSTANCE_MOVE";
            name: string;
            node?: string;
            dataRate?: 0 | number;
        } | {
            /** @constant */
            opcode: "INSTANCE_MIGRATE";
            name: string;
            node?: string;
            /** @description default: 3600 */
            timeoutS?: number;
            dataRate?: 0 | number;
            /** @constant */
            cleanup?: true;
        } | {
            /** @constant */
            opcode: "INSTANCE_FAILOVER";
            name: string;
            node?: string;
        } | {
            /** @constant */
            opcode: "INSTANCE_STARTUP";
            name: string;
            /** @description default: {} */
            osParametersSecret?: {
                [key: string]: string;
            };
        } | {
            /** @constant */
            opcode: "INSTANCE_SHUTDOWN";
            name: string;
            /** @description default: 120 */
            timeoutS?: number;
        } | {
            /** @constant */
            opcode: "INSTANCE_REBOOT";
            name: string;
            /**
             * @description default: "soft"
             * @enum {string}
             */
            kind?: "soft" | "hard" | "full";
            /** @description default: 120 */
            timeoutS?: number;
        } | {
            /** @constant */
            opcode: "INSTANCE_GROW_DISK";
            name: string;
            disk: number;
            amountBytes: number;
            /** @description default: false */
            absolute?: boolean;
        } | {
            /** @constant */
            opcode: "INSTANCE_RUN_SCRIPT";
            name: string;
            script: string;
            /** @description default: {} */
            inputs?: {
                [key: string]: string;
            };
        } | {
            /** @constant */
            opcode: "INSTANCE_SNAPSHOT";
            name: string;
            snapshot: string;
            copy?: boolean;
        } | {
            /** @constant */
            opcode: "INSTANCE_RESTORE";
            name: string;
            snapshot: string;
        } | {
            /** @constant */
            opcode: "INSTANCE_REMOVE_SNAPSHOT";
            name: string;
            snapshot: string;
        } | {
            /** @constant */
            opcode: "BACKUP_EXPORT";
            name: string;
            /** @description default: 120 */
            shutdownTimeoutS?: number;
            installTimeoutS?: number;
        } | {
            /** @constant */
            opcode: "BACKUP_REMOVE";
            name: string;
        } | {
            /** @constant */
            opcode: "OS_SET_PARAMS";
            name: string;
            trusted?: boolean;
            hidden?: boolean;
            blacklisted?: boolean;
            /** @enum {string} */
            safeInstall?: "optional" | "required";
            appliance?: string | null;
            /** @description default: {} */
            osParameters?: {
                [key: string]: string | null;
            };
            /** @description default: {} */
            osParametersPrivate?: {
                [key: string]: string | null;
            };
        } | {
            /** @constant */
            opcode: "PROFILE_SET_PARAMS";
            name: string;
            /** @description default: {} */
            osParameters?: {
                [key: string]: string | null;
            };
            /** @description default: {} */
            osParametersPrivate?: {
                [key: string]: string | null;
            };
        } | {
            /** @constant */
            opcode: "PROFILE_REMOVE";
            name: string;
        } | {
            /** @constant */
            opcode: "NETWORK_ADD";
            name: string;
            network: string;
            /** Format: ipv4 */
            gateway?: string;
            macPrefix?: string;
            /** @description default: [] */
            addReserved?: string[];
            /** @description default: [] */
            tags?: string[];
        } | {
            /** @constant */
            opcode: "NETWORK_SET_PARAMS";
            name: string;
            gateway?: string | null;
            macPrefix?: string | null;
            /** @description default: [] */
            addReserved?: string[];
            /** @description default: [] */
            removeReserved?: string[];
            /** @description default: [] */
            addTags?: string[];
            /** @description default: [] */
            removeTags?: string[];
        } | {
            /** @constant */
            opcode: "NETWORK_CONNECT";
            name: string;
            /** @description default: [] */
            nodes?: string[];
            connection: {
                /** @constant */
                mode: "bridged";
                link: string;
            } | {
                /** @constant */
                mode: "nat";
            };
        } | {
            /** @constant */
            opcode: "NETWORK_DISCONNECT";
            name: string;
            /** @description default: [] */
            nodes?: string[];
        } | {
            /** @constant */
            opcode: "NETWORK_REMOVE";
            name: string;
        } | {
            /** @constant */
            opcode: "BOOTENV_SET";
            bootEnvs?: {
                Name: string;
                Description?: string | null;
                Documentation?: string | null;
                Meta?: {
                    [key: string]: string | number | boolean | null;
                } | null;
                OS: {
                    Family?: string | null;
                    Codename?: string | null;
                    Version?: string | null;
                    Name: string;
                    SupportedArchitectures: {
                        amd64: {
                            IsoFile?: ("" | string) | null;
                            Sha256?: string | null;
                            IsoUrl?: string | null;
                            Kernel?: ("" | string) | null;
                            Initrds?: string[] | null;
                            BootParams?: string | null;
                        };
                    };
                };
                Loaders: {
                    "amd64-uefi"?: string;
                };
                Templates?: {
                    Name: string;
                    Path: string;
                    ID?: ("" | string) | null;
                    Contents?: string | null;
                    Link?: string | null;
                    Meta?: {
                        [key: string]: string | number | boolean | null;
                    } | null;
                }[] | null;
                RequiredParams?: string[] | null;
                OptionalParams?: string[] | null;
                LeftOut?: string[];
            }[];
            templates?: {
                LeftOut?: unknown;
                Available?: unknown;
                Bundle?: unknown;
                Endpoint?: unknown;
                Errors?: unknown;
                Partial?: unknown;
                ReadOnly?: unknown;
                Validated?: unknown;
                Description?: string | null;
                Documentation?: string | null;
                Meta?: {
                    [key: string]: string | number | boolean | null;
                } | null;
                ID: string;
                Contents: string;
            }[];
            params?: {
                LeftOut?: unknown;
                Available?: unknown;
                Bundle?: unknown;
                Endpoint?: unknown;
                Errors?: unknown;
                Partial?: unknown;
                ReadOnly?: unknown;
                Validated?: unknown;
                Description?: string | null;
                Documentation?: string | null;
                Meta?: {
                    [key: string]: string | number | boolean | null;
                } | null;
                Name: string;
                Secure?: boolean | null;
                Schema?: unknown;
            }[];
            /** @description default: [] */
            profiles?: {
                name: string;
                osParameters: {
                    [key: string]: string;
                };
            }[];
        } | {
            /** @constant */
            opcode: "BOOTENV_REMOVE";
            object: {
                /** @constant */
                kind: "bootEnv";
                name: string;
            } | {
                /** @constant */
                kind: "template";
                name: string;
            } | {
                /** @constant */
                kind: "param";
                name: string;
            };
        } | {
            /** @constant */
            opcode: "BOOTENV_UPLOAD_ISO";
            bootEnv: string;
            source?: string;
        } | {
            /** @constant */
            opcode: "BOOTENV_DESTROY_ISO";
            isoFile: string;
        } | {
            /** @constant */
            opcode: "CLUSTER_SET_PARAMS";
            installTimeoutS?: number;
            hostScripts?: boolean;
            appliance?: string | null;
            defaultOs?: string | null;
            launchDefaults?: {
                diskBytes?: number | null;
                memoryMiB?: number | null;
                vcpus?: number | null;
                net?: string | null;
            };
            maxImageBytes?: number;
            downloadTimeoutS?: number;
            minDownloadRate?: number;
            imageCa?: string | null;
            remoteFolders?: string[];
            sharedFileStorageDir?: string | null;
            vgName?: string | null;
            zfsPool?: string | null;
            lowSpacePercent?: number;
            dataRate?: 0 | number;
            remoteHosts?: (string)[];
            confineGuests?: boolean;
            guestNetworks?: (string)[];
            /** @description default: {} */
            exposeServices?: {
                [key: string]: ({
                    port: number;
                    host: string;
                    hostPort: number;
                    /** @constant */
                    protocol?: "udp";
                } | {
                    port: number;
                    socketPath: string;
                    /** @constant */
                    protocol?: "udp";
                }) | null;
            };
            imageKeys?: {
                [key: string]: string | null;
            };
            /** @description default: {} */
            packageMirrors?: {
                [key: string]: string | null;
            };
            identity?: {
                /** @enum {string} */
                policy?: "no" | "yes" | "tagged";
                trustDomain?: string | null;
                issuer?: string | null;
                audiences?: string[];
                revoked?: {
                    [key: string]: boolean;
                };
                aws?: {
                    sts: string;
                    role?: string;
                    roles?: {
                        [key: string]: string;
                    };
                    audience?: string;
                    region?: string;
                } | null;
                google?: {
                    provider: string;
                    account?: string;
                    accounts?: {
                        [key: string]: string;
                    };
                    sts?: string;
                    iam?: string;
                } | null;
            };
            relays?: {
                [key: string]: {
                    url: string;
                    auth: {
                        /** @constant */
                        kind: "bearer";
                    } | {
                        /** @constant */
                        kind: "basic";
                        user: string;
                    } | {
                        /** @constant */
                        kind: "header";
                        name: string;
                    } | {
                        /** @constant */
                        kind: "query";
                        name: string;
                    };
                    /** @enum {string} */
                    access: "tagged" | "all";
                    methods?: ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS")[];
                    paths?: string[];
                    rate?: number;
                    maxBytes?: number;
                    timeoutS?: number;
                } | null;
            };
            addTags?: string[];
            removeTags?: string[];
        } | {
            /** @constant */
            opcode: "NODE_SET_PARAMS";
            name: string;
            drained?: boolean;
            offline?: boolean;
        } | {
            /** @constant */
            opcode: "TEST_DELAY";
            durationS: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
