'use strict';

const { createHash } = require('crypto');

const config = require('../config');
const { typeOf } = require('../models/fileType');
const documents = require('../store/documents');

function refuse(res, status, error, more) {
  res.status(status).json({ error, ...more });
}

function tagsOf(text) {
  const tags = text.split(',').map((tag) => tag.trim().toLowerCase());
  return [...new Set(tags)].filter((tag) => tag !== '');
}

function baseName(filename) {
  const name = filename.split(/[/\\]/).pop().trim();
  return ['', '.', '..'].includes(name) ? 'document' : name;
}

function create(req, res) {
  const text = (name) => req.parts.find((part) => part.name === name && part.filename === undefined);
  const title = text('title') ? text('title').data.toString().trim() : '';
  const files = req.parts.filter((part) => part.name === 'file' && part.filename !== undefined);
  if (title === '' || files.length !== 1) return refuse(res, 400, 'A title and one file are needed');

  const { filename, data } = files[0];
  if (data.length >= config.fileLimit) return refuse(res, 413, 'File too large');
  const type = typeOf(data);
  if (!type) return refuse(res, 415, 'Unsupported file type');
  const sha256 = createHash('sha256').update(data).digest('hex');
  const twin = documents.all().find((document) => document.sha256 === sha256);
  if (twin) return refuse(res, 409, 'Already stored', { id: twin.id });

  const tags = text('tags') ? tagsOf(text('tags').data.toString()) : [];
  const record = { title, tags, name: baseName(filename), size: data.length, type, sha256 };
  return res.status(201).json(documents.add(record, data));
}

function list(req, res) {
  const tag = req.query.tag === undefined ? null : String(req.query.tag).trim().toLowerCase();
  res.json(documents.all().filter((document) => tag === null || document.tags.includes(tag)));
}

/** Puts the document that the path names where the next handler finds it. */
function find(req, res, next) {
  req.document = documents.get(Number(req.params.id));
  if (!req.document) return refuse(res, 404, 'Document not found');
  return next();
}

function show(req, res) {
  res.json(req.document.record);
}

function content(req, res) {
  const { record, content: bytes } = req.document;
  res.set({
    'Content-Type': record.type,
    'Content-Disposition': `attachment; filename="${record.name.replace(/[^\x20-\x7e]|"/g, '_')}"`,
    'X-Content-Type-Options': 'nosniff',
    ETag: `"${record.sha256}"`,
  });
  res.send(bytes);
}

function remove(req, res) {
  documents.remove(req.document.record.id);
  res.status(204).end();
}

module.exports = { create, list, find, show, content, remove };
