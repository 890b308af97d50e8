import { readFileSync } from 'node:fs';
import ts from 'typescript';

/** One small mistake in one file. */
export interface Mutant {
  readonly file: string;
  readonly start: number;
  readonly end: number;
  /** Offset of the changed expression or statement: `start` may be its operator. */
  readonly at: number;
  readonly text: string;
}

const SWAPPED: Readonly<Record<string, string>> = {
  ...{ '===': '!==', '!==': '===', '&&': '||', '||': '&&' },
  ...{ '<': '<=', '<=': '<', '>': '>=', '>=': '>', '+': '-', '-': '+' },
};

/** Words that a program compares or sends; sentences are for people and change freely. */
const CONSTANT = /^[\w./:-]+$/;

/** A call that only writes a message: a person misses it, no program does. */
const MESSAGE = /(?:^|\.#?)(?:logger\.\w+|report\.log|context\.(?:note|warn))$/;

/** Returns the mutants of a file, in the order of its text. */
export function findMutants(file: string): readonly Mutant[] {
  const text = readFileSync(file, 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: Mutant[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node) || ts.isTypeNode(node)) return;
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return;
    // The string is the name of a property or of a module.
    if (ts.isPropertyAssignment(node)) return visit(node.initializer);
    if (ts.isElementAccessExpression(node)) return visit(node.expression);
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) return;
    if (guardsMessage(node)) return;
    const changed = isOfMessage(node) ? null : mutate(node, source);
    const place = ts.isBinaryExpression(node) ? node.operatorToken : node;
    if (changed !== null) {
      const [at, start] = [node.getStart(source), place.getStart(source)];
      found.push({ file, start, end: place.end, at, text: changed });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Returns the text in place of a node, or of its operator; null: the node stays. */
function mutate(node: ts.Node, source: ts.SourceFile): string | null {
  if (ts.isBinaryExpression(node)) return SWAPPED[node.operatorToken.getText(source)] ?? null;
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken)
    return node.operand.getText(source);
  if (isCondition(node)) return `!(${node.getText(source)})`;
  if (isDroppable(node)) return '{}';
  if (ts.isArrayLiteralExpression(node) && node.elements.length > 0) return '[]';
  if (node.kind === ts.SyntaxKind.TrueKeyword) return 'false';
  if (node.kind === ts.SyntaxKind.FalseKeyword) return 'true';
  if (ts.isStringLiteral(node) && CONSTANT.test(node.text)) return "'mutated'";
  return null;
}

function isDroppable(node: ts.Node): boolean {
  if (isMessage(node)) return false;
  if (ts.isIfStatement(node)) return node.elseStatement === undefined;
  if (ts.isThrowStatement(node)) return true;
  // `void held` only marks a parameter as used.
  return ts.isExpressionStatement(node) && !ts.isVoidExpression(node.expression);
}

function guardsMessage(node: ts.Node): boolean {
  return (
    ts.isIfStatement(node) && node.elseStatement === undefined && isMessage(node.thenStatement)
  );
}

function isMessage(node: ts.Node): boolean {
  return ts.isExpressionStatement(node) && isMessageCall(node.expression);
}

/** Tells whether a node is the text of a message, such as the name of an event in a log. */
function isOfMessage(node: ts.Node): boolean {
  const { parent } = node as { readonly parent?: ts.Node };
  return ts.isStringLiteral(node) && parent !== undefined && isMessageCall(parent);
}

function isMessageCall(node: ts.Node): boolean {
  return ts.isCallExpression(node) && MESSAGE.test(node.expression.getText());
}

function isCondition(node: ts.Node): boolean {
  const { parent } = node as { readonly parent?: ts.Node };
  if (parent === undefined || ts.isBinaryExpression(node)) return false;
  if (ts.isConditionalExpression(parent)) return parent.condition === node;
  return ts.isIfStatement(parent) && parent.expression === node;
}

export function applyMutant({ file, start, end, text }: Mutant): string {
  const source = readFileSync(file, 'utf8');
  return source.slice(0, start) + text + source.slice(end);
}

/** Returns `FILE:LINE` and the changed lines as a diff. */
export function describeMutant(mutant: Mutant): string {
  const before = readFileSync(mutant.file, 'utf8');
  const line = before.slice(0, mutant.start).split('\n').length;
  const first = before.lastIndexOf('\n', mutant.start - 1) + 1;
  const end = before.indexOf('\n', mutant.end);
  const head = before.slice(first, mutant.start);
  const old = before.slice(first, end);
  const changed = head + mutant.text + before.slice(mutant.end, end);
  const mark = (text: string, sign: string): string => text.replace(/^/gm, `  ${sign} `);
  return `${mutant.file}:${line}\n${mark(old, '-')}\n${mark(changed, '+')}`;
}
