import { createHmac, randomBytes, randomInt } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import {
  createServer as createHttp,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http';
import { createServer as createNet, type Server } from 'node:net';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createLocalJWKSet, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import { z } from 'zod';
import { isSignedWith, readSigned } from './aws-signature.ts';
import { listenOnLoopback } from './listen-on-loopback.ts';
import { makeOwnAuthority } from './own-authority.ts';

export const ROLE = 'arn:aws:iam::123456789012:role/team/web';
export const ACCOUNT = 'web@project.iam.gserviceaccount.com';
export const PROVIDER =
  '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/gnt';
export const BUCKET = 'gnt-test-bucket';

/** Another behaviour of the security token service, for one answer. */
export type Misbehaviour = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * A cloud: security token services that verify tokens with the published keys alone, and an S3 that
 * verifies signatures.
 */
export interface CloudLab extends AsyncDisposable {
  /** PEM of its certificate. */
  readonly certificate: string;
  readonly url: string;
  /** S3 and the exchange at `/v1/token`: http with a PROXY header, for an exposed service. */
  readonly s3Port: number;
  /** Never leaves the cloud. Secrets of sessions follow from it. */
  readonly originSecret: string;
  /** Claims of the accepted tokens. */
  readonly accepted: JWTPayload[];
  readonly asked: string[];
  /** Credentials of AWS. */
  readonly issued: { readonly secretAccessKey: string }[];
  misbehaviour: Misbehaviour | undefined;
  /** Seconds until new credentials expire. */
  lifeS: number;
}

export interface CloudLabOptions {
  /** Reads the key set at the issuer's URL. */
  readonly keys: () => Promise<string>;
  readonly issuer: string;
  /** Milliseconds since the epoch; the system's by default. */
  readonly now?: () => number;
}

const KEY_SET = z.custom<JSONWebKeySet>();

export async function startCloud({
  keys,
  issuer,
  now = Date.now,
}: CloudLabOptions): Promise<CloudLab> {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-cloud-'));
  const { key, cert } = await makeOwnAuthority(directory);
  const originSecret = randomBytes(32).toString('hex');
  /** Google's tokens by account; the federated ones have none. */
  const google = new Map<string, string | null>();
  const derive = (kind: string, id: string): string =>
    createHmac('sha256', originSecret).update(`${kind} ${id}`).digest('base64');

  const verify = async (token: string, audience: string): Promise<JWTPayload> => {
    const { payload } = await jwtVerify(
      token,
      createLocalJWKSet(KEY_SET.parse(JSON.parse(await keys()))),
      {
        ...{ issuer, audience, algorithms: ['RS256', 'ES256'], currentDate: new Date(now()) },
        requiredClaims: ['sub', 'exp', 'iat', 'nbf', 'jti'],
      },
    );
    lab.accepted.push(payload);
    return payload;
  };
  const expiry = (): Date => new Date(now() + lab.lifeS * 1000);

  const assumeRole = async (form: URLSearchParams): Promise<string> => {
    const wanted = ['Action', 'Version', 'RoleArn'].map((name) => form.get(name)).join(' ');
    if (wanted !== `AssumeRoleWithWebIdentity 2011-06-15 ${ROLE}`)
      throw new Error('Not authorized to perform sts:AssumeRoleWithWebIdentity');
    if (!/^[\w+=,.@-]{2,64}$/.test(form.get('RoleSessionName') ?? '')) throw new Error('session');
    await verify(form.get('WebIdentityToken') ?? '', 'sts.amazonaws.com');
    const id =
      `ASIA${Array.from({ length: 16 }, () => randomInt(36).toString(36)).join('')}`.toUpperCase();
    const secretAccessKey = derive('secret', id);
    lab.issued.push({ secretAccessKey });
    return [
      '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">',
      '<AssumeRoleWithWebIdentityResult><Audience>sts.amazonaws.com</Audience>',
      `<AssumedRoleUser><Arn>${ROLE}</Arn></AssumedRoleUser><Credentials>`,
      `<AccessKeyId>${id}</AccessKeyId>`,
      `<SecretAccessKey>${secretAccessKey}</SecretAccessKey>`,
      `<SessionToken>${derive('session', id)}</SessionToken>`,
      `<Expiration>${expiry().toISOString().replace(/\.\d+/, '')}</Expiration></Credentials>`,
      '</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>',
    ].join('\n');
  };
  const exchange = async (form: URLSearchParams): Promise<string> => {
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:token-exchange')
      throw new Error('grant_type');
    await verify(form.get('subject_token') ?? '', PROVIDER);
    const token = `federated.${randomBytes(16).toString('hex')}`;
    google.set(token, null);
    return JSON.stringify({
      ...{ access_token: token, token_type: 'Bearer', expires_in: lab.lifeS },
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    });
  };
  const impersonate = async (request: IncomingMessage, account: string): Promise<string> => {
    const [, federated = ''] = /^Bearer (.*)$/.exec(request.headers.authorization ?? '') ?? [];
    if (account !== ACCOUNT || google.get(federated) !== null)
      throw new Error("Permission 'iam.serviceAccounts.getAccessToken' denied");
    const token = `ya29.${randomBytes(16).toString('hex')}`;
    google.set(token, account);
    return JSON.stringify({ accessToken: token, expireTime: expiry().toISOString() });
  };
  const answer = async (request: IncomingMessage): Promise<string> => {
    const { pathname } = new URL(request.url ?? '/', 'https://localhost');
    const body = await text(request);
    const [, account] = /serviceAccounts\/([^/:]+):generateAccessToken$/.exec(pathname) ?? [];
    if (account !== undefined) return impersonate(request, account);
    const form = new URLSearchParams(body);
    if (pathname === '/v1/token') return exchange(form);
    return assumeRole(form);
  };

  const serveSts = (request: IncomingMessage, response: ServerResponse): void => {
    lab.asked.push(request.url ?? '');
    const { misbehaviour } = lab;
    if (misbehaviour) {
      misbehaviour(request, response);
      return;
    }
    answer(request).then(
      (content) => response.end(content),
      (error: unknown) => {
        const reason = error instanceof Error ? error.message : '';
        const isAws = request.url === '/';
        response
          .writeHead(isAws ? 403 : 400)
          .end(
            isAws
              ? `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>${reason}</Message></Error></ErrorResponse>`
              : JSON.stringify(
                  request.url === '/v1/token'
                    ? { error: 'invalid_grant', error_description: reason }
                    : { error: { code: 403, message: reason, status: 'PERMISSION_DENIED' } },
                ),
          );
      },
    );
  };
  const sts = createServer({ key, cert }, serveSts);
  const s3 = createHttp((request, response) => {
    if (request.url === '/v1/token') {
      serveSts(request, response);
      return;
    }
    const signed = readSigned(request);
    const isTheirs =
      signed !== undefined &&
      signed.sessionToken === derive('session', signed.accessKeyId) &&
      isSignedWith(request, derive('secret', signed.accessKeyId));
    if (!isTheirs) {
      response
        .writeHead(403)
        .end('<Error><Code>SignatureDoesNotMatch</Code><Message>no</Message></Error>');
      return;
    }
    response
      .writeHead(200, { 'content-type': 'application/xml' })
      .end(
        [
          '<ListAllMyBucketsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Owner><ID>1</ID></Owner>',
          `<Buckets><Bucket><Name>${BUCKET}</Name><CreationDate>2026-01-01T00:00:00.000Z</CreationDate></Bucket></Buckets>`,
          '</ListAllMyBucketsResult>',
        ].join(''),
      );
  });
  const port = await listenOnLoopback(sts);
  const front = behindProxy(s3);
  const s3Port = await listenOnLoopback(front);
  const lab: CloudLab = {
    ...{ certificate: cert, url: `https://127.0.0.1:${port}`, s3Port, originSecret },
    ...{ accepted: [], asked: [], issued: [], misbehaviour: undefined, lifeS: 3600 },
    [Symbol.asyncDispose]: async () => {
      for (const server of [sts, s3]) server.closeAllConnections();
      for (const server of [sts, front]) await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true });
    },
  };
  return lab;
}

/** Signature, version, family and length of a PROXY header, version 2. */
const PROXY_HEAD_BYTES = 16;

/** Takes the PROXY header of each connection, and gives the rest to a web server. */
function behindProxy(server: HttpServer): Server {
  return createNet({ allowHalfOpen: true }, (socket) => {
    socket.once('readable', () => {
      const first = socket.read() as Buffer; // no encoding is set
      const end = PROXY_HEAD_BYTES + first.readUInt16BE(PROXY_HEAD_BYTES - 2);
      if (first.length > end) socket.unshift(first.subarray(end));
      server.emit('connection', socket);
    });
    socket.on('error', () => undefined);
  });
}
