ActiveRecord::Schema.define(version: 2024_03_11_090000) do
  create_table :users do |t|
    t.string :name, null: false
    t.string :role, null: false
  end

  create_table :jobs do |t|
    t.references :user, null: false, foreign_key: true
    t.string :title
    t.string :company
    t.string :location
    t.text :description
    t.integer :salary
  end

  create_table :job_applications do |t|
    t.references :job, null: false, foreign_key: true
    t.references :user, null: false, foreign_key: true
    t.text :cover_letter
    t.string :cv_name, null: false
    t.binary :cv, null: false
  end
end
