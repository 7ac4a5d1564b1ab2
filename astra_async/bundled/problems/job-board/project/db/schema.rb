ActiveRecord::Schema.define(version: 2024_03_11_090000) do
  create_table :users do |t|
    t.string :name, null: false
    t.string :email, null: false, index: { unique: true }
    t.string :password_digest, null: false
    t.string :role, null: false
    t.timestamps
  end

  create_table :jobs do |t|
    t.references :user, null: false, foreign_key: true
    t.string :title
    t.string :company
    t.string :location
    t.text :description
    t.integer :salary
    t.timestamps
  end

  create_table :job_applications do |t|
    t.references :job, null: false, foreign_key: true
    t.references :user, null: false, foreign_key: true
    t.text :cover_letter
    t.string :cv_key, null: false
    t.string :cv_name, null: false
    t.integer :cv_size, null: false
    t.timestamps
  end
end
