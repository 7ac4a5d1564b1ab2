'use strict';

const express = require('express');
const multer = require('multer');

const config = require('../config');
const { typeOf } = require('../models/fileType');
const documents = require('../store/documents');

const router = express.Router();
const upload = multer({ limits: { fileSize: config.fileLimit } });

function refuse(res, status, error) {
  res.status(status).json({ error });
}

function baseName(filename) {
  const name = filename.split(/[/\\]/).pop().trim();
  return ['', '.', '..'].includes(name) ? 'document' : name;
}

router.post('/', upload.single('file'), (req, res) => {
  const title = (req.body.title || '').trim();
  if (title === '' || !req.file) return refuse(res, 400, 'A title and one file are needed');

  const { originalname: filename, buffer: data } = req.file;
  if (data.length > config.fileLimit) return refuse(res, 413, 'File too large');
  const type = typeOf(data);
  if (!type) return refuse(res, 415, 'Unsupported file type');

  const record = { title, name: baseName(filename), size: data.length, type };
  return res.status(201).json(documents.add(record, data));
});

router.get('/', (req, res) => {
  res.json(documents.all());
});

/** Puts the document that the path names where the next handler finds it. */
function find(req, res, next) {
  req.document = documents.get(Number(req.params.id));
  if (!req.document) return refuse(res, 404, 'Document not found');
  return next();
}

router.get('/:id', find, (req, res) => {
  res.json(req.document.record);
});

router.get('/:id/content', find, (req, res) => {
  const { record, content } = req.document;
  res.set({
    'Content-Type': record.type,
    'Content-Disposition': `attachment; filename="${record.name.replace(/[^\x20-\x7e]|"/g, '_')}"`,
    'X-Content-Type-Options': 'nosniff',
  });
  res.send(content);
});

module.exports = router;
